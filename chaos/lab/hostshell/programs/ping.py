"""ping(8), with the losses, delays and duplicates of the host's queueing disciplines."""

from __future__ import annotations

import ipaddress
import re

from chaos.lab.hostshell.packet_filter import drops_ping
from chaos.lab.hostshell.process import HostSystem, Process, Program

_ROUND_TRIP = 0.0003  # seconds between two machines of the lab
_PLAIN = re.compile(r"-n -q -c (?P<count>\d+) -i (?P<interval>[\d.]+) -W (?P<wait>\d+) (?P<address>\S+)")
_BURST = re.compile(
    r"-n -q -l (?P<preload>\d+) -c (?P<count>\d+) -s (?P<size>\d+) -S \d+ -W (?P<wait>\d+) (?P<address>\S+)"
)
_SIZED = re.compile(
    r"-n -q -M do -c (?P<count>\d+) -i (?P<interval>[\d.]+) -W (?P<wait>\d+) -s (?P<size>\d+) (?P<address>\S+)"
)
_HEADERS = 42  # bytes: Ethernet, IPv4, ICMP


async def ping(process: Process, argv: list[str]) -> int:
    """``ping -n -q -c COUNT -i SECONDS -W SECONDS ADDRESS``, or with ``-l COUNT -s SIZE -S BUFFER`` all at once."""
    words = " ".join(argv[1:])
    match = _PLAIN.fullmatch(words) or _BURST.fullmatch(words) or _SIZED.fullmatch(words)
    if match is None:
        return process.fail("ping: the lab simulates only -n -q -c -W, and -i, -M do -i -s or -l -s -S", 2)
    given, host, count = match.groupdict(), process.host, int(match["count"])
    is_burst = "preload" in given
    if is_burst and not process.is_root:
        return process.fail("ping: cannot set preload to value greater than 3: 25", 2)
    is_filtered = _is_filtered(host, match["address"], int(given.get("size", 56)))
    host.caught_packets += count if is_filtered else 0
    is_cut = is_filtered or _is_cut(host, match["address"])
    times, doubles = ([], 0) if is_cut else _send(host, given, count)
    last = max(times, default=0.0) if len(times) == count else float(match["wait"])
    await host.lockstep.wait_until(host.sim.now + (0.0 if is_burst else (count - 1) * float(given["interval"])) + last)
    lost = f"{100 * (count - len(times)) / count:g}% packet loss"
    more = f", +{doubles} duplicates" if doubles else ""
    process.out(
        f"--- {match['address']} ping statistics ---\n{count} packets transmitted, {len(times)} received{more}, "
    )
    process.out(f"{lost}, time 0ms\n")
    if times:
        mean = sum(times) / len(times)
        shown = "/".join(f"{1000 * value:.3f}" for value in (min(times), mean, max(times), 0.0))
        process.out(f"rtt min/avg/max/mdev = {shown} ms\n")
    return 0 if times else 1


def _is_filtered(host: HostSystem, address: str, size: int) -> bool:
    """Whether a rule of the host drops a ping with so many bytes of data, or its answer."""
    is_ipv4 = ipaddress.ip_address(address).version == 4
    own = host.machine.network.resolve(host.machine.name).get("ipv4" if is_ipv4 else "ipv6", address)
    chains = tuple(chain for table in host.tables.values() for chain in table.chains)
    return drops_ping(chains, own, address, size + (28 if is_ipv4 else 48))


def _is_cut(host: HostSystem, address: str) -> bool:
    """Whether the network between the host and an API server is cut elsewhere."""
    network = host.machine.network
    server = next((family for family, known in network.server_addresses.items() if known == address), None)
    return server is not None and not network.can_connect(server)


def _send(host: HostSystem, given: dict[str, str], count: int) -> tuple[list[float], int]:
    """Seconds of each ping that is answered, and how many answers came once more."""
    address, rng, traffic = given["address"], host.sim.rng, host.traffic
    times, doubles, bits = [], 0, 0.0
    for _ in range(count):
        bits += 8 * (int(given["size"]) + _HEADERS) if "preload" in given else 0.0  # those before it go first
        late_out, twice_out = traffic.out.pass_ping(address, rng, bits)
        if late_out is None:
            continue
        late_in, twice_in = traffic.inbound.pass_ping(address, rng, bits)
        if late_in is None:
            continue
        times.append(_ROUND_TRIP + late_out + late_in)
        doubles += twice_out + twice_in
    return times, doubles


PROGRAMS: dict[str, Program] = {"ping": ping}

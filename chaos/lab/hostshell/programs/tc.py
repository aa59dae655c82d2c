"""tc(8), ip route get, ping and unshare --net, for queueing disciplines of nodefall only."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.shell import execute
from chaos.lab.hostshell.traffic import BAND, NETEM, ROOT, Traffic, TrafficError
from chaos.lab.node.impairment import Impairment

_COMMANDS = {
    "root": re.compile(rf"qdisc add dev (?P<dev>\S+) root handle {ROOT} prio bands 4"),
    "netem": re.compile(rf"qdisc (?:add|change) dev (?P<dev>\S+) parent {BAND} handle {NETEM} netem (?P<text>.*)"),
    "filter": re.compile(rf"filter add dev (?P<dev>\S+) parent {ROOT} (?P<text>.*)"),
    "delete": re.compile(r"qdisc del dev (?P<dev>\S+) root handle (?P<text>\S+)"),
    "show": re.compile(r"qdisc show(?: dev (?P<dev>\S+))?"),
}
_ROUND_TRIP = 0.0003  # seconds between two machines of the lab


async def tc(process: Process, argv: list[str]) -> int:
    """``tc [-s] [-j] qdisc show [dev D]``, ``tc qdisc del ...``, ``tc -batch -``: commands that nodefall sends."""
    options = [word for word in argv[1:3] if word in ("-s", "-j")]
    words = argv[1 + len(options) :]
    lines = [" ".join(words)]
    if is_batch := words == ["-batch", "-"]:
        lines = []
        while line := await process.read_line():
            lines.append(line.strip())
    if not process.is_root and (is_batch or "show" not in words):
        return process.fail("RTNETLINK answers: Operation not permitted", 2)
    for number, line in enumerate(lines, 1):
        try:
            _run(process, line, options)
        except TrafficError as error:
            return process.fail(f"{error}\nCommand failed -:{number}" if is_batch else str(error), 1 if is_batch else 2)
    return 0


def _run(process: Process, line: str, options: list[str]) -> None:
    """Run one command. Raises TrafficError."""
    traffic = process.host.traffic
    name, match = next(((n, m) for n, p in _COMMANDS.items() if (m := p.fullmatch(line))), ("", None))
    if match is None:
        raise TrafficError(f"the lab simulates no tc {line}")
    if match["dev"] not in (None, traffic.interface):
        raise TrafficError(f'Cannot find device "{match["dev"]}"')
    if name == "show":
        rows = traffic.rows(with_counters="-s" in options)
        text = "".join(f"qdisc {row['kind']} {row['handle']} dev {row['dev']}\n" for row in rows)
        process.out(json.dumps(rows) + "\n" if "-j" in options else text)
        return
    if name == "root":
        traffic.add_root()
    elif name == "netem":
        traffic.set_netem(match["text"])
    elif name == "filter":
        traffic.add_filter(match["text"])
    else:
        traffic.delete_root(match["text"])
    apply_traffic(process.host)


def apply_traffic(host: HostSystem) -> None:
    """Apply queueing disciplines and filters to packets from this host to the API server."""
    if host.traffic.interface == Traffic.interface:  # not in a separate namespace
        network = host.machine.network
        network.impair({f: host.traffic.impairment_to(address) for f, address in network.server_addresses.items()})


async def unshare(process: Process, argv: list[str]) -> int:
    """``unshare --net PROGRAM...``: in a network namespace with only a loopback interface."""
    if argv[1:2] != ["--net"] or len(argv) < 3:
        return process.fail("unshare: the lab simulates only unshare --net PROGRAM")
    if not process.is_root:
        return process.fail("unshare: unshare failed: Operation not permitted")
    host = dataclasses.replace(process.host, traffic=Traffic("lo"))
    return await execute(process.replace(host=host), argv[2:], "unshare")


async def ip(process: Process, argv: list[str]) -> int:
    """``ip -j -force -batch -`` with lines ``route get ADDRESS``."""
    if argv[1:] != ["-j", "-force", "-batch", "-"]:
        return process.fail("ip: the lab simulates only ip -j -force -batch -", 255)
    network, code = process.host.machine.network, 0
    own = network.resolve(process.host.machine.name)
    while line := await process.read_line():
        address = line.split()[-1]
        family = "ipv4" if ipaddress.ip_address(address).version == 4 else "ipv6"
        if not line.startswith("route get ") or family not in own:
            code = process.fail("RTNETLINK answers: Network is unreachable")
            continue
        is_own = address in own.values()
        row = {"dst": address, "dev": "lo" if is_own else "eth0"} | ({"type": "local"} if is_own else {})
        process.out(json.dumps([row]) + "\n")
    return code


async def ping(process: Process, argv: list[str]) -> int:
    """``ping -n -q -c COUNT -i SECONDS -W SECONDS ADDRESS``."""
    match = re.fullmatch(r"-n -q -c (\d+) -i ([\d.]+) -W (\d+) (\S+)", " ".join(argv[1:]))
    if match is None:
        return process.fail("ping: the lab simulates only ping -n -q -c COUNT -i SECONDS -W SECONDS ADDRESS", 2)
    host, count, address = process.host, int(match[1]), match[4]
    times = [] if _is_cut(host, address) else _round_trips(host, host.traffic.impairment_to(address), count)
    last = times[-1] if len(times) == count else float(match[3])
    await host.lockstep.wait_until(host.sim.now + (count - 1) * float(match[2]) + last)
    lost = f"{100 * (count - len(times)) / count:g}% packet loss"
    process.out(f"--- {address} ping statistics ---\n{count} packets transmitted, {len(times)} received, {lost}\n")
    if times:
        mean = sum(times) / len(times)
        shown = "/".join(f"{1000 * value:.3f}" for value in (min(times), mean, max(times), 0.0))
        process.out(f"rtt min/avg/max/mdev = {shown} ms\n")
    return 0 if times else 1


def _is_cut(host: HostSystem, address: str) -> bool:
    """Whether a firewall drops the packets; the lab has only rules about the API server."""
    network = host.machine.network
    server = next((family for family, known in network.server_addresses.items() if known == address), None)
    return server is not None and not network.can_connect(server)


def _round_trips(host: HostSystem, impairment: Impairment, count: int) -> list[float]:
    """Seconds of each ping that is answered."""
    rng = host.sim.rng
    times = [_ROUND_TRIP + impairment.lateness(rng) for _ in range(count) if impairment.passes(rng)]
    if host.traffic.impairment is not None:
        host.traffic.passed += len(times)
        host.traffic.dropped += count - len(times)
    return times


PROGRAMS: dict[str, Program] = {"ip": ip, "ping": ping, "tc": tc, "unshare": unshare}

"""getent, curl and ss, for the API server only.

ping(8), with the losses, delays and duplicates of the host's queueing disciplines.
ip(8): links, and routes to an address.
"""

from __future__ import annotations

import ipaddress
import json
import re
from urllib.parse import urlsplit

from chaos.lab.hostshell.packet_filter import API_PORT, drops_ping
from chaos.lab.hostshell.process import HostSystem, Process, Program, UnknownOptionError, split_options
from chaos.lab.hostshell.programs.packets import apply_traffic
from chaos.lab.hostshell.traffic import IFB, TrafficError
from chaos.lab.node.network import Family

_FLAGS = {name: name.strip("-") for name in ("-4", "-6", "-k", "-s", "-S", "-f", "--insecure", "--silent", "--fail")}
_VALUED = {
    "-m": "limit", "--max-time": "limit", "--connect-timeout": "limit",
    "-o": "output", "--output": "output", "--noproxy": "noproxy",
}  # fmt: skip
_UNRESOLVED, _REFUSED, _TIMED_OUT = 6, 7, 28
_ANYWHERE = "192.0.2.53"  # an address for documentation
_LOOKUP_TIMEOUT = 2.0  # with RES_OPTIONS=timeout:2 attempts:1
_CONNECT_TIMEOUT = 130.0  # tcp_syn_retries=6
_RESPONSES = {"/livez": "ok", "/readyz": "ok", "/healthz": "ok"}


async def getent(process: Process, argv: list[str]) -> int:
    """``getent ahosts|ahostsv4|ahostsv6 NAME``, ``getent -s dns ahosts NAME.``: any name is known to the DNS server."""
    if argv[1:4] == ["-s", "dns", "ahosts"] and len(argv) == 5:
        return await _query_dns(process, argv[4])
    network = process.host.machine.network
    databases: dict[str, tuple[Family, ...]] = {
        "ahosts": network.families, "ahostsv4": ("ipv4",), "ahostsv6": ("ipv6",),
    }  # fmt: skip
    if len(argv) != 3 or argv[1] not in databases:
        return process.fail("getent: the lab simulates only getent ahosts|ahostsv4|ahostsv6 NAME")
    addresses = network.resolve(argv[2])
    result = [addresses[family] for family in databases[argv[1]] if family in addresses]
    for address in result:
        for kind in ("STREAM", "DGRAM", "RAW"):
            process.out(f"{address:<15} {kind:<6} {argv[2] if kind == 'STREAM' else ''}".rstrip() + "\n")
    return 0 if result else 2


async def _query_dns(process: Process, name: str) -> int:
    rules = [
        rule for table in process.host.tables.values() for way, rules in table.chains if way == "out" for rule in rules
    ]
    if any(rule.ends_lookups for rule in rules):
        process.host.caught_packets += 1
        if all(rule.verdict == "drop" for rule in rules if rule.ends_lookups):
            await process.host.lockstep.wait_until(process.host.sim.now + _LOOKUP_TIMEOUT)
        return 2
    process.out(f"{_ANYWHERE:<15} STREAM {name.rstrip('.')}\n")
    return 0


async def curl(process: Process, argv: list[str]) -> int:
    """``curl [-4|-6] [-k] [-s] [-S] [-f] [-m SECONDS] [-o FILE] https://API:6443/readyz``, over a new connection."""
    try:
        options, words = split_options(argv[1:], _FLAGS, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"curl: {error}", 2)
    url = urlsplit(words[0] if len(words) == 1 else "")
    network = process.host.machine.network
    addresses = network.resolve(url.hostname or "")
    families = [family for family in network.families if family in addresses]
    if requested := {"ipv4" for _ in options.get("4", ())} | {"ipv6" for _ in options.get("6", ())}:
        families = [family for family in families if family in requested]
    if not families:
        return process.fail(f"curl: (6) Could not resolve host: {url.hostname}", _UNRESOLVED)
    server = {ipaddress.ip_address(address) for address in network.server_addresses.values()}
    is_server = all(ipaddress.ip_address(addresses[family]) in server for family in families)
    if url.port != API_PORT or not is_server or url.path not in _RESPONSES:
        return process.fail("curl: (7) the lab simulates only the API server's /livez, /readyz and /healthz", _REFUSED)
    if any(network.can_connect(family) for family in families):
        process.out("" if "output" in options else _RESPONSES[url.path])
        return 0
    limit = min((float(text) for text in options.get("limit", ())), default=_CONNECT_TIMEOUT)
    await process.host.lockstep.wait_until(process.host.sim.now + limit)
    return process.fail(f"curl: (28) Connection timed out after {limit * 1000:.0f} milliseconds", _TIMED_OUT)


async def ss(process: Process, argv: list[str]) -> int:
    """``ss -Htnp state established FILTER``: the kubelet's connection, if there is one."""
    if argv[1:4] != ["-Htnp", "state", "established"]:
        return process.fail("ss: the lab simulates only ss -Htnp state established FILTER")
    machine = process.host.machine
    family = machine.kubelet.connection_family
    if family and re.search(rf"\bdport = :{API_PORT}\b", " ".join(argv[4:])):
        host, server = machine.network.resolve(machine.name)[family], machine.network.server_addresses[family]
        ends = [f"[{address}]" if family == "ipv6" else address for address in (host, server)]
        users = f'users:(("kubelet",pid={machine.kubelet.pid},fd=14))' if process.is_root else ""
        process.out(f"0      0      {ends[0]}:40000 {ends[1]}:{API_PORT} {users}\n")
    return 0


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


_CHANGES = ("link add {0} type ifb", "link set {0} up", "link del {0}")


async def ip(process: Process, argv: list[str]) -> int:
    """Lists of links and black holes, ``ip link add|set|del`` of nodefall's device, and ``ip -j -force -batch -``."""
    words = " ".join(argv[1:])
    if words == "-j -force -batch -":
        return await _routes(process)
    if (rows := _listed(process, words)) is not None:
        process.out(json.dumps(rows) + "\n")
        return 0
    if words not in [text.format(IFB) for text in _CHANGES]:
        return process.fail("ip: the lab simulates only link show, link add|set|del nodefall0 and route get", 255)
    if not process.is_root:
        return process.fail("RTNETLINK answers: Operation not permitted", 2)
    traffic = process.host.traffic
    try:
        if argv[2] == "add":
            traffic.add_ifb()
        elif argv[2] == "del":
            traffic.delete_ifb()
    except TrafficError as error:
        return process.fail(str(error), 2 if argv[2] == "add" else 1)
    apply_traffic(process.host)
    return 0


def _listed(process: Process, words: str) -> list[dict[str, object]] | None:
    """Rows of what is listed, None for other commands. There are no black holes, as with Calico."""
    if re.fullmatch(r"(-d )?-j link show", words):
        return _links(process, is_detailed=words.startswith("-d"))
    return [] if re.fullmatch(r"-j -[46] route show type blackhole", words) else None


def _links(process: Process, *, is_detailed: bool) -> list[dict[str, object]]:
    traffic = process.host.traffic
    kinds = {"lo": "", traffic.interface: ""} | ({IFB: "ifb"} if traffic.has_ifb else {})
    return [
        {"ifname": name, "mtu": 65536 if name == "lo" else 1500}
        | ({"linkinfo": {"info_kind": kind}} if kind and is_detailed else {})
        for name, kind in kinds.items()
    ]


async def _routes(process: Process) -> int:
    """Lines ``route get ADDRESS``; everything is reached through the interface, as through a gateway."""
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


PROGRAMS: dict[str, Program] = {
    "curl": curl,
    "getent": getent,
    "ss": ss,
    "ping": ping,
    "ip": ip,
}

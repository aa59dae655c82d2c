"""getent, curl and ss, for the API server only."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from chaos.lab.hostshell.packet_filter import API_PORT
from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.options import UnknownOptionError, split_options
from chaos.lab.node.network import Family

_FAMILY: dict[int, Family] = {4: "ipv4", 6: "ipv6"}
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


PROGRAMS: dict[str, Program] = {"curl": curl, "getent": getent, "ss": ss}

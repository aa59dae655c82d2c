"""ip(8): links, and routes to an address."""

from __future__ import annotations

import ipaddress
import json
import re

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.tc import apply_traffic
from chaos.lab.hostshell.traffic import IFB, TrafficError

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


PROGRAMS: dict[str, Program] = {"ip": ip}

"""tc(8) and unshare --net, for queueing disciplines of nodefall only."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.shell import execute
from chaos.lab.hostshell.traffic import EFFECT, IFB, INGRESS, ROOT, Traffic, TrafficError

_DEVICE = r"dev (?P<dev>\S+)"
_COMMANDS = {
    "root": re.compile(rf"qdisc add {_DEVICE} root handle {ROOT} prio bands 4"),
    "effect": re.compile(
        rf"qdisc add {_DEVICE} parent (?P<parent>\S+) handle (?P<handle>\S+) (?P<text>(?:netem|tbf) .*)"
    ),
    "inbound": re.compile(rf"qdisc add {_DEVICE} root handle {EFFECT} (?P<text>(?:netem|tbf) .*)"),
    "ingress": re.compile(rf"qdisc add {_DEVICE} ingress"),
    "filter": re.compile(rf"filter add {_DEVICE} parent (?P<parent>{ROOT}|{INGRESS}) (?P<text>.*)"),
    "unfilter": re.compile(rf"filter del {_DEVICE} ingress (?P<text>protocol \S+ pref \d+)"),
    "delete": re.compile(rf"qdisc del {_DEVICE} root handle (?P<text>\S+)"),
    "uningress": re.compile(rf"qdisc del {_DEVICE} ingress"),
    "show": re.compile(rf"qdisc show(?: {_DEVICE})?"),
    "filters": re.compile(rf"filter show {_DEVICE} parent (?P<parent>{ROOT}|{INGRESS})"),
}
_SHOWS = ("show", "filters")


async def tc(process: Process, argv: list[str]) -> int:
    """``tc [-s] [-j] qdisc show [dev D]``, ``tc qdisc|filter del ...``, ``tc [-force] -batch -``."""
    options = [word for word in argv[1:3] if word in ("-s", "-j", "-force")]
    words = argv[1 + len(options) :]
    lines = [" ".join(words)]
    if is_batch := words == ["-batch", "-"]:
        lines = []
        while line := await process.read_line():
            lines.append(line.strip())
    if not process.is_root and (is_batch or "show" not in words):
        return process.fail("RTNETLINK answers: Operation not permitted", 2)
    code = 0
    for number, line in enumerate(lines, 1):
        try:
            _run(process, line, options)
        except TrafficError as error:
            text = f"{error}\nCommand failed -:{number}" if is_batch else str(error)
            code = process.fail(text, 1 if is_batch else 2)
            if "-force" not in options:
                break
    return code


def _run(process: Process, line: str, options: list[str]) -> None:
    """Run one command. Raises TrafficError."""
    traffic = process.host.traffic
    name, match = next(((n, m) for n, p in _COMMANDS.items() if (m := p.fullmatch(line))), ("", None))
    if match is None:
        raise TrafficError(f"the lab simulates no tc {line}")
    device = match["dev"]
    if device not in {None, traffic.interface, *([IFB] if traffic.has_ifb else ())}:
        raise TrafficError(f'Cannot find device "{device}"')
    if name in _SHOWS:
        _show(process, name, match, options)
        return
    _change(traffic, name, match)
    apply_traffic(process.host)


def _change(traffic: Traffic, name: str, match: re.Match[str]) -> None:
    """Raises TrafficError."""
    if (name == "inbound") != (match["dev"] == IFB):
        raise TrafficError(f"the lab simulates no tc {match[0]}")
    found = match.groupdict()
    changes: dict[str, Callable[[], None]] = {
        "root": traffic.add_root,
        "ingress": traffic.add_ingress,
        "uningress": traffic.delete_ingress,
        "effect": lambda: traffic.set_effect(found["parent"], found["handle"], found["text"]),
        "inbound": lambda: traffic.inbound.set_effect(found["text"]),
        "filter": lambda: traffic.add_filter(found["parent"], found["text"]),
        "unfilter": lambda: traffic.delete_filters(found["text"]),
        "delete": lambda: traffic.delete_root(found["text"]),
    }
    changes[name]()


def _show(process: Process, name: str, match: re.Match[str], options: list[str]) -> None:
    traffic = process.host.traffic
    if name == "filters":
        path = traffic.out if match["parent"] == ROOT else traffic.inbound
        is_out = match["parent"] == ROOT
        hit = "classid 4e0f:4" if is_out else f"mirred (Egress Redirect to device {IFB}) stolen"
        keep = "classid 4e0f:1" if is_out else "gact action pass"
        for known in path.filters:
            process.out(f"filter {known.key} flower chain 0 {hit if known.hits else keep}\n")
        return
    rows = [row for row in traffic.rows(with_counters="-s" in options) if match["dev"] in (None, row["dev"])]
    if "-j" in options:
        process.out(json.dumps(rows) + "\n")
        return
    lines = [f"qdisc {row['kind']} {row['handle']} dev {row['dev']}" for row in rows]
    process.out("".join(f"{line}\n" for line in (*lines, *traffic.others)))


def apply_traffic(host: HostSystem) -> None:
    """Apply queueing disciplines and filters to packets between this host and the API server."""
    if host.traffic.interface == Traffic.interface:  # not in a separate namespace
        network = host.machine.network
        servers = network.server_addresses.items()
        network.impair(
            {family: host.traffic.out.impairment_of(address) for family, address in servers},
            {family: host.traffic.inbound.impairment_of(address) for family, address in servers},
        )


async def unshare(process: Process, argv: list[str]) -> int:
    """``unshare --net PROGRAM...``: in a network namespace with only a loopback interface."""
    if argv[1:2] != ["--net"] or len(argv) < 3:
        return process.fail("unshare: the lab simulates only unshare --net PROGRAM")
    if not process.is_root:
        return process.fail("unshare: unshare failed: Operation not permitted")
    host = dataclasses.replace(process.host, traffic=Traffic("lo"), tables={})
    return await execute(process.replace(host=host), argv[2:], "unshare")


async def modprobe(process: Process, argv: list[str]) -> int:
    """``modprobe -q ifb numifbs=0``: a kernel of the lab has the module."""
    if argv[1:] != ["-q", "ifb", "numifbs=0"]:
        return process.fail("modprobe: the lab simulates only modprobe -q ifb numifbs=0")
    return 0 if process.is_root else process.fail("modprobe: ERROR: could not insert 'ifb': Operation not permitted")


PROGRAMS: dict[str, Program] = {"modprobe": modprobe, "tc": tc, "unshare": unshare}

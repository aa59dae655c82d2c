"""nft(8), for the table of nodefall only; anything else is rejected.

tc(8) and unshare --net, for queueing disciplines of nodefall only.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable

from chaos.lab.hostshell.packet_filter import NftRule, RuleError, dropped_directions, parse_rule
from chaos.lab.hostshell.process import HostSystem, NftTable, Process, Program
from chaos.lab.hostshell.shell import execute
from chaos.lab.hostshell.traffic import EFFECT, IFB, INGRESS, ROOT, Traffic, TrafficError
from chaos.lab.node.network import Direction

TABLE = "inet nodefall"
_ADD = re.compile(rf"(?:add\s+)?table\s+{TABLE}\s*(?P<open>\{{)?")
_REMOVE = re.compile(rf"(?P<verb>delete|destroy)\s+table\s+{TABLE}")
_CHAIN = re.compile(
    r"[;\s]*chain\s+\w+\s*\{\s*type\s+filter\s+hook\s+(?P<hook>input|output|forward|prerouting)\s+priority\s+[-\w]+\s*;"
    r"(?:\s*policy\s+accept\s*;)?(?P<rules>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"
)
_DIRECTIONS: dict[str, Direction] = {"input": "in", "output": "out"}  # hosts of the lab forward no packets
_MISSING = "Error: No such file or directory"


async def nft(process: Process, argv: list[str]) -> int:
    """``nft --version``, ``nft -f -``, ``nft list tables``, ``nft list|delete|destroy table inet nodefall``."""
    if argv[1:] == ["--version"]:
        process.out("nftables v1.0.6 (Lester Gooch #5)\n")
        return 0
    if not process.is_root:
        return process.fail("Operation not permitted (you must be root)")
    words = argv[1:]
    if words[:1] == ["list"]:
        return _list(process, words[1:])
    script = await _read(process) if words == ["-f", "-"] else " ".join(words)
    tables = dict(process.host.tables)
    try:
        _run(tables, script)
    except RuleError as error:
        return process.fail(str(error))
    process.host.tables = tables  # all or nothing, as in nft
    process.host.caught_packets = process.host.caught_packets if TABLE in tables else 0
    apply(process.host)
    return 0


async def _read(process: Process) -> str:
    lines = []
    while line := await process.read_line():
        lines.append(line)
    return "".join(lines)


def _run(tables: dict[str, NftTable], script: str) -> None:
    text = re.sub(r"#[^\n]*", "", script).strip().strip(";").strip()
    if not text:
        raise RuleError("Error: syntax error, unexpected end of file")
    while text:
        end = 0
        if match := _REMOVE.match(text):
            if tables.pop(TABLE, None) is None and match["verb"] == "delete":
                raise RuleError(f"{_MISSING}\n{match[0]}")
        elif match := _ADD.match(text):
            body, end = _block(text, match.end()) if match["open"] else ("", 0)
            old = tables.get(TABLE, NftTable())
            tables[TABLE] = NftTable(old.chains + tuple(_chains(body)), old.text + body)
        else:
            raise RuleError(f"Error: the lab simulates only rules in table {TABLE}\n{text}")
        text = text[end or match.end() :].lstrip("; \t\n")


def _block(text: str, start: int) -> tuple[str, int]:
    """Text from ``start``, just after an opening brace, to the closing one, and the end of the block."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index], index + 1
    raise RuleError("Error: syntax error, unexpected end of file")


def _chains(body: str) -> list[tuple[Direction, tuple[NftRule, ...]]]:
    chains: list[tuple[Direction, tuple[NftRule, ...]]] = []
    rest = body
    while match := _CHAIN.match(rest):
        rules = tuple(parse_rule(text) for text in re.split(r"[;\n]", match["rules"]) if text.strip())
        if match["hook"] in _DIRECTIONS:
            chains.append((_DIRECTIONS[match["hook"]], rules))
        rest = rest[match.end() :]
    if rest.strip("; \t\n"):
        raise RuleError(
            f"Error: the lab simulates only filter chains of hooks input, output, forward, prerouting\n{rest.strip()}"
        )
    return chains


def apply(host: HostSystem) -> None:
    """Apply the tables to traffic between this host and the API server; in another namespace there is none."""
    if host.traffic.interface == "lo":
        return
    network = host.machine.network
    own, servers = network.resolve(host.machine.name), network.server_addresses
    chains = tuple(chain for table in host.tables.values() for chain in table.chains)
    ours, to_kubelet = (
        {
            (family, way)
            for family in servers
            for way in dropped_directions(chains, family, own[family], servers[family], port)
        }
        for port in (0, host.machine.kubelet_port)
    )
    network.set_drops(ours, to_kubelet)


def _list(process: Process, words: list[str]) -> int:
    tables = process.host.tables
    if words == ["tables"]:
        process.out("".join(f"table {name}\n" for name in tables))
        return 0
    name = " ".join(words[1:])
    if words[:1] != ["table"] or name not in tables:
        return process.fail(f"{_MISSING}\nlist {' '.join(words)}")
    text = tables[name].text.strip().replace("counter ", "counter packets 0 bytes 0 ")
    text = text.replace("packets 0 ", f"packets {process.host.caught_packets} ", 1)  # the lab counts those of all rules
    lines = "".join(f"\t{line.strip()}\n" for line in text.splitlines() if line.strip())
    process.out(f"table {name} {{\n{lines}}}\n")
    return 0


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
            _tc_run(process, line, options)
        except TrafficError as error:
            text = f"{error}\nCommand failed -:{number}" if is_batch else str(error)
            code = process.fail(text, 1 if is_batch else 2)
            if "-force" not in options:
                break
    return code


def _tc_run(process: Process, line: str, options: list[str]) -> None:
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


PROGRAMS: dict[str, Program] = {
    "nft": nft,
    "modprobe": modprobe,
    "tc": tc,
    "unshare": unshare,
}

"""nft(8), for the table of nodefall only; anything else is rejected."""

from __future__ import annotations

import re

from chaos.lab.hostshell.packet_filter import NftRule, RuleError, dropped_directions, parse_rule
from chaos.lab.hostshell.process import HostSystem, NftTable, Process, Program
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
    process.out(f"table {name} {{\n{text}\n}}\n")
    return 0


PROGRAMS: dict[str, Program] = {"nft": nft}

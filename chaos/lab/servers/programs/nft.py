"""nft(8), as far as nodefall's own table needs it: drop rules by address. Anything else is refused, not pretended."""

from __future__ import annotations

import ipaddress
import re

from chaos.lab.network import Direction, Family
from chaos.lab.servers.process import HostSystem, NftTable, Process, Program

TABLE = "inet nodefall"
_ADD = re.compile(rf"(?:add\s+)?table\s+{TABLE}\s*(?P<open>\{{)?")
_REMOVE = re.compile(rf"(?P<verb>delete|destroy)\s+table\s+{TABLE}")
_CHAIN = re.compile(
    r"[;\s]*chain\s+\w+\s*\{\s*type\s+filter\s+hook\s+(?P<hook>input|output)\s+priority\s+[-\w]+\s*;"
    r"(?:\s*policy\s+accept\s*;)?(?P<rules>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"
)
_RULE = re.compile(
    r"(?P<family>ip6?)\s+(?P<end>saddr|daddr)\s+(?:\{(?P<set>[^{}]+)\}|(?P<one>[0-9a-fA-F.:/]+))\s+(?:counter\s+)?drop"
)
_ENDS: dict[str, tuple[str, Direction]] = {"input": ("saddr", "in"), "output": ("daddr", "out")}
_MISSING = "Error: No such file or directory"


class _RefusedError(ValueError):
    """Not valid, or more than the lab does."""


async def nft(process: Process, argv: list[str]) -> int:
    """``nft -f -``, ``nft list tables|table inet nodefall``, ``nft delete|destroy table inet nodefall``."""
    if not process.root:
        return process.fail("Operation not permitted (you must be root)")
    words = argv[1:]
    if words[:1] == ["list"]:
        return _list(process, words[1:])
    script = await _read(process) if words == ["-f", "-"] else " ".join(words)
    tables = dict(process.host.tables)
    try:
        _run(tables, script)
    except _RefusedError as error:
        return process.fail(str(error))
    process.host.tables = tables  # all or nothing, as nft does it
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
        raise _RefusedError("Error: syntax error, unexpected end of file")
    while text:
        end = 0
        if match := _REMOVE.match(text):
            if tables.pop(TABLE, None) is None and match["verb"] == "delete":
                raise _RefusedError(f"{_MISSING}\n{match[0]}")
        elif match := _ADD.match(text):
            body, end = _block(text, match.end()) if match["open"] else ("", 0)
            old = tables.get(TABLE, NftTable())
            tables[TABLE] = NftTable(old.drops + tuple(_chains(body)), old.text + body)
        else:
            raise _RefusedError(f"Error: the lab simulates only drop rules by address in table {TABLE}\n{text}")
        text = text[end or match.end() :].lstrip("; \t\n")


def _block(text: str, begin: int) -> tuple[str, int]:
    """What stands between a brace before ``begin`` and the one that closes it, and where that ends."""
    depth = 1
    for index in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[begin:index], index + 1
    raise _RefusedError("Error: syntax error, unexpected end of file")


def _chains(body: str) -> list[tuple[Direction, str]]:
    drops: list[tuple[Direction, str]] = []
    rest = body
    while match := _CHAIN.match(rest):
        drops += _rules(match["hook"], match["rules"])
        rest = rest[match.end() :]
    if rest.strip("; \t\n"):
        raise _RefusedError(f"Error: the lab simulates only filter chains of hooks input and output\n{rest.strip()}")
    return drops


def _rules(hook: str, text: str) -> list[tuple[Direction, str]]:
    wanted, direction = _ENDS[hook]
    drops: list[tuple[Direction, str]] = []
    for rule in (part.strip() for part in re.split(r"[;\n]", text)):
        match = _RULE.fullmatch(rule)
        if rule and (match is None or match["end"] != wanted):
            raise _RefusedError(f"Error: the lab simulates only drop rules by {wanted} in {hook}\n{rule}")
        if match:
            drops += [
                (direction, _network(match["family"], item)) for item in (match["set"] or match["one"]).split(",")
            ]
    return drops


def _network(family: str, text: str) -> str:
    try:
        found = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise _RefusedError(f"Error: Could not parse address\n{text.strip()}") from error
    if found.version != (4 if family == "ip" else 6):
        raise _RefusedError(f"Error: Address family mismatch\n{family} {text.strip()}")
    return str(found)


def apply(host: HostSystem) -> None:
    """Drop what the tables say between this host and the API server."""
    peers: dict[Family, str] = host.machine.network.server_addresses
    drops = [drop for table in host.tables.values() for drop in table.drops]
    host.machine.network.drop_only(
        {
            (family, direction)
            for family, address in peers.items()
            for direction, cidr in drops
            if ipaddress.ip_address(address) in ipaddress.ip_network(cidr)
        }
    )


def _list(process: Process, words: list[str]) -> int:
    tables = process.host.tables
    if words == ["tables"]:
        process.out("".join(f"table {name}\n" for name in tables))
        return 0
    name = " ".join(words[1:])
    if words[:1] != ["table"] or name not in tables:
        return process.fail(f"{_MISSING}\nlist {' '.join(words)}")
    process.out(f"table {name} {{\n{tables[name].text.strip()}\n}}\n")
    return 0


PROGRAMS: dict[str, Program] = {"nft": nft}

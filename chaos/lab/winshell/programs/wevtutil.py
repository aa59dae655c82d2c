"""wevtutil.exe qe System: events of the System log as text or XML, by a filter on EventID and provider."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from chaos.lab.windows.event_log import EventRecord
from chaos.lab.winshell.process import WinProcess

_NAMESPACE = "http://schemas.microsoft.com/win/2004/08/events/event"
_QUERY = re.compile(r"\*(?:\[System\[(.*)\]\])?")
_ID = re.compile(r"\(?EventID\s*=\s*(\d+)\)?")
_PROVIDER = re.compile(r"Provider\[@Name\s*=\s*'([^']+)'\]")
_RECENT = re.compile(r"TimeCreated\[timediff\(@SystemTime\)\s*<=\s*(\d+)\]")
_LEVELS = {1: "Critical", 2: "Error", 3: "Warning", 4: "Information"}
_BAD_QUERY, _NO_CHANNEL = 15001, 15007


async def wevtutil(process: WinProcess, arguments: list[str]) -> int:
    """``wevtutil qe System /q:XPATH /c:COUNT /rd:true /f:xml|text``."""
    options = {name.lower(): value for name, _, value in (word[1:].partition(":") for word in arguments[2:])}
    if len(arguments) < 2 or arguments[0].lower() not in ("qe", "query-events"):
        return process.fail("Invalid command. Use wevtutil /? for usage.", 87)
    if arguments[1].lower() != "system":
        return process.fail("Failed to open event query. The specified channel could not be found.", _NO_CHANNEL)
    query = _parse(options.get("q", options.get("query", "*")))
    if query is None:
        return process.fail("Failed to open event query. The specified query is invalid.", _BAD_QUERY)
    ids, providers, seconds = query
    found = [
        record
        for record in process.machine.event_log.records
        if (not ids or record.event_id in ids)
        and (not providers or record.source in providers)
        and (seconds is None or process.machine.clock.now - record.t <= seconds)
    ]
    if options.get("rd", options.get("reversedirection", "false")).lower() == "true":
        found.reverse()
    count = options.get("c", options.get("count", ""))
    for number, record in enumerate(found[: int(count)] if count.isdecimal() else found):
        if options.get("f", options.get("format", "xml")).lower() == "text":
            _print_text(process, number, record)
        else:
            process.line(_xml(process, record))
    return 0


def _parse(text: str) -> tuple[set[int], set[str], float | None] | None:
    """IDs, providers and age in seconds of a query that joins them by ``and``, IDs by ``or``; None if invalid."""
    match = _QUERY.fullmatch(text.strip())
    if not match:
        return None
    rest = match[1] or ""
    ids = {int(found) for found in _ID.findall(rest)}
    providers = set(_PROVIDER.findall(rest))
    recent = _RECENT.search(rest)
    for pattern in (_ID, _PROVIDER, _RECENT):
        rest = pattern.sub("", rest)
    if re.sub(r"\b(?:and|or)\b|[()\s]", "", rest):
        return None
    return ids, providers, int(recent[1]) / 1000 if recent else None


def _time(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


def _xml(process: WinProcess, record: EventRecord) -> str:
    data = "".join(
        f"<Data Name={quoteattr(name)}>{escape(value)}</Data>" if name else f"<Data>{escape(value)}</Data>"
        for name, value in record.data
    )
    return (
        f"<Event xmlns='{_NAMESPACE}'><System><Provider Name={quoteattr(record.source)}/><EventID>{record.event_id}"
        f"</EventID><Level>{record.level}</Level><TimeCreated SystemTime='{_time(record.t)}000Z'/><EventRecordID>"
        f"{record.record_id}</EventRecordID><Channel>System</Channel><Computer>{process.machine.computer}</Computer>"
        f"</System><EventData>{data}</EventData></Event>"
    )


def _print_text(process: WinProcess, number: int, record: EventRecord) -> None:
    rows = [
        f"Event[{number}]:",
        "  Log Name: System",
        f"  Source: {record.source}",
        f"  Date: {_time(record.t)[:-3]}0000Z",
        f"  Event ID: {record.event_id}",
        "  Task: N/A",
        f"  Level: {_LEVELS[record.level]}",
        "  Opcode: Info",
        "  Keyword: Classic",
        "  User: N/A",
        "  User Name: N/A",
        f"  Computer: {process.machine.computer}",
        "  Description: ",
        record.message,
        "",
    ]
    for row in rows:
        process.line(row)

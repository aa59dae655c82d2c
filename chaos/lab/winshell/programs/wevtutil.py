"""wevtutil.exe qe System: events of the System log as XML, by a filter on EventID and provider."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from chaos.lab.windows.event_log import EventRecord, stamp
from chaos.lab.winshell.process import WinProcess

_NAMESPACE = "http://schemas.microsoft.com/win/2004/08/events/event"
_QUERY = re.compile(r"/q:\*\[System\[\((Provider\[.*\])\) and \((EventID=[^)]*)\)\]\]")
_ID, _PROVIDER = re.compile(r"EventID=(\d+)"), re.compile(r"Provider\[@Name='([^']+)'\]")
_BAD_QUERY, _BAD_COMMAND = 15001, 87


async def wevtutil(process: WinProcess, arguments: list[str]) -> int:
    """``wevtutil qe System /q:*[System[(PROVIDERS) and (IDS)]] /c:COUNT /rd:true /f:xml``, the newest first."""
    match arguments:
        case ["qe", "System", query, count, "/rd:true", "/f:xml"] if re.fullmatch(r"/c:\d+", count):
            wanted = _QUERY.fullmatch(query)
        case _:
            return process.fail("Invalid command. Use wevtutil /? for usage.", _BAD_COMMAND)
    if wanted is None:
        return process.fail("Failed to open event query. The specified query is invalid.", _BAD_QUERY)
    providers, ids = _PROVIDER.findall(wanted[1]), set(map(int, _ID.findall(wanted[2])))
    records = reversed(process.machine.event_log.records)
    found = [record for record in records if record.event_id in ids and record.source in providers]
    for record in found[: int(count.removeprefix("/c:"))]:
        process.line(_xml(process, record))
    return 0


def _xml(process: WinProcess, record: EventRecord) -> str:
    data = "".join(
        f"<Data Name={quoteattr(name)}>{escape(value)}</Data>" if name else f"<Data>{escape(value)}</Data>"
        for name, value in record.data
    )
    return (
        f"<Event xmlns='{_NAMESPACE}'><System><Provider Name={quoteattr(record.source)}/><EventID>{record.event_id}"
        f"</EventID><Level>{record.level}</Level><TimeCreated SystemTime='{stamp(record.t)}'/><EventRecordID>"
        f"{record.record_id}</EventRecordID><Channel>System</Channel><Computer>{process.machine.computer}</Computer>"
        f"</System><EventData>{data}</EventData></Event>"
    )

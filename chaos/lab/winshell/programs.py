"""Programs of the simulated Windows machines: what nodefall starts there, with the output of the real ones.

schtasks.exe: query, run, end, delete. Messages as recorded, dates as on an English Windows; errors exit with 1.
wevtutil.exe qe System: events of the System log as XML, by a filter on EventID and provider.
shutdown.exe: a countdown, or its abort. Silent on success; errors with their code on stderr. And NotMyFault.
"""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from chaos.lab.node.logind import Kind
from chaos.lab.windows.disk import EventRecord, stamp
from chaos.lab.windows.power import LEGACY_REASON, PowerError, ShutdownRequest
from chaos.lab.windows.tasks import RUNNING, Task, format_task_xml
from chaos.lab.winshell.host_programs import hostname, netsh, reg, sc, whoami
from chaos.lab.winshell.powershell import powershell
from chaos.lab.winshell.process import SYSTEM32, Program, WinProcess

_SHORT = ["TaskName", "Next Run Time", "Status"]
_COLUMNS = [
    *("HostName", "TaskName", "Next Run Time", "Status", "Logon Mode", "Last Run Time", "Last Result", "Author"),
    *("Task To Run", "Start In", "Comment", "Scheduled Task State", "Idle Time", "Power Management", "Run As User"),
    *("Delete Task If Not Rescheduled", "Stop Task If Runs X Hours and X Mins", "Schedule", "Schedule Type"),
    *("Start Time", "Start Date", "End Date", "Days", "Months", "Repeat: Every", "Repeat: Until: Time"),
    *("Repeat: Until: Duration", "Repeat: Stop If Still Running"),
]
_NEVER = "11/30/1999 12:00:00 AM"  # what Windows shows for a task that never ran


async def schtasks(process: WinProcess, arguments: list[str]) -> int:
    """``/query /fo csv [/nh]``, ``/query /tn NAME /xml``, ``/query /tn NAME /fo csv /v [/nh]``, ``/run``, ``/end``,
    ``/delete /f``."""
    tasks = process.machine.tasks
    if arguments[:3] == ["/query", "/fo", "csv"]:
        return _print_csv(process, tasks.all(), _SHORT, arguments[3:])
    if len(arguments) < 3 or arguments[1] != "/tn":
        return process.fail('ERROR: Invalid syntax.\r\nType "SCHTASKS /?" for usage.')
    verb, _, name, *rest = arguments
    task = tasks.get(name)
    if task is None:
        unknown = f'The specified task name "{name}" does not exist in the system.'
        return process.fail(f"ERROR: {unknown if verb == '/delete' else 'The system cannot find the file specified.'}")
    match [verb, *rest]:
        case ["/query", "/xml"]:
            process.out(format_task_xml(task).replace("\n", "\r\n"))
        case ["/query", "/fo", "csv", "/v", *options]:
            return _print_csv(process, [task], _COLUMNS, options)
        case ["/run"]:
            tasks.run_now(task)
            process.line(f'SUCCESS: Attempted to run the scheduled task "{name}".')
        case ["/end"]:
            tasks.end(task)
            # no recording: the text
            process.line(f'SUCCESS: The scheduled task "{name}" has been terminated successfully.')
        case ["/delete", "/f"]:
            tasks.delete(name)
            process.line(f'SUCCESS: The scheduled task "{name}" was successfully deleted.')
        case _:
            return process.fail('ERROR: Invalid syntax.\r\nType "SCHTASKS /?" for usage.')
    return 0


def _print_csv(process: WinProcess, tasks: list[Task], columns: list[str], options: list[str]) -> int:
    """``options``: ``/nh`` for no header."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if options != ["/nh"]:
        writer.writerow(columns)
    writer.writerows([row[column] for column in columns] for task in tasks for row in _rows(process, task))
    process.out(text.getvalue())
    return 0


def _rows(process: WinProcess, task: Task) -> list[dict[str, str]]:
    """One row per trigger."""
    definition = task.definition
    result = task.last_result - (1 << 32) if task.last_result >= 1 << 31 else task.last_result
    next_run = task.next_run(process.machine.clock.now)
    common = dict.fromkeys(_COLUMNS, "N/A") | {
        "HostName": process.machine.computer,
        "TaskName": task.name,
        "Next Run Time": "N/A" if next_run is None else _date_time(next_run),
        "Status": "Running" if task.last_result == RUNNING else "Ready",
        "Logon Mode": "Interactive/Background",
        "Last Run Time": _NEVER if task.last_run is None else _date_time(task.last_run),
        "Last Result": str(result),
        "Task To Run": definition.command_line,
        "Scheduled Task State": "Enabled",
        "Run As User": definition.user,
        "Schedule": "Scheduling data is not available in this format.",
    }
    rows = []
    for start in definition.starts:
        date, _, time = _date_time(start).partition(" ")
        rows.append(common | {"Schedule Type": "One Time Only", "Start Time": time, "Start Date": date})
    if definition.at_boot:
        rows.append(common | {"Schedule Type": "At system start up"})
    return rows or [common]


def _date_time(t: float) -> str:
    when = datetime.fromtimestamp(t, UTC)
    return f"{when.month}/{when.day}/{when.year} {when.strftime('%I:%M:%S %p').lstrip('0')}"


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


_DEFAULT_SECONDS, _MAX_SECONDS = 30, 315_360_000
_MESSAGES = {
    1115: "A system shutdown is in progress.(1115)",
    1116: "Unable to abort the system shutdown because no shutdown was in progress.(1116)",
    1190: "A system shutdown has already been scheduled.(1190)",
}
_USAGE = "Usage: shutdown [/i | /l | /s | /sg | /r | /g | /a | /p | /h | /e | /o] [/hybrid] [/soft] [/fw] [/f]"
_REASONS = {"p:4:1": "No title for this reason could be found (Planned)|0x80040001"}  # others are not simulated
_VALUED = re.compile("[tcd]")


class _UsageError(ValueError):
    """A bad option."""


async def shutdown(process: WinProcess, arguments: list[str]) -> int:
    """``shutdown /s|/r [/t SECONDS] [/f] [/c TEXT] [/d REASON]``, ``shutdown /a``."""
    try:
        options = _parse(arguments)
        if options.keys() == {"a"}:
            process.machine.power.abort()
        else:
            process.machine.power.request(_request(process, options))
    except PowerError as error:
        process.err(_MESSAGES[error.code] + "\n")  # one byte of line end, as recorded: 40 and 52 bytes
        return error.code
    except _UsageError:
        process.line(_USAGE)
        return 1  # no recording: the exit code of the help
    return 0


def _parse(words: list[str]) -> dict[str, str]:
    """Options by lower-case letter, without their / or -. Raises _UsageError."""
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name = word[1:].lower()
        if word[:1] not in ("/", "-") or name not in ("s", "r", "a", "f", "t", "c", "d"):
            raise _UsageError(word)
        options[name] = next(rest, "") if _VALUED.fullmatch(name) else ""
    return options


def _request(process: WinProcess, options: dict[str, str]) -> ShutdownRequest:
    """Raises _UsageError."""
    seconds, comment = options.get("t", str(_DEFAULT_SECONDS)), options.get("c", "")
    if not seconds.isdecimal() or int(seconds) > _MAX_SECONDS or len(comment) > 512 or "a" in options:
        raise _UsageError(seconds)
    if options.keys().isdisjoint({"s", "r"}) or options.get("d", "p:4:1") not in _REASONS:
        raise _UsageError(" ".join(options))
    reason = _REASONS[options["d"]] if "d" in options else LEGACY_REASON
    kind: Kind = "reboot" if "r" in options else "poweroff"
    return ShutdownRequest(kind, float(seconds), SYSTEM32 + "shutdown.exe", process.user, reason, comment)


async def notmyfault(process: WinProcess, arguments: list[str]) -> int:
    """``notmyfault64 /accepteula /crash`` of Sysinternals: a bug check. No recording of what it answers else."""
    if "/crash" not in arguments:
        return process.fail("Usage: notmyfault64 /crash")
    process.machine.crash()
    return 0


PROGRAMS: dict[str, Program] = {
    "hostname": hostname,
    "netsh": netsh,
    "notmyfault64": notmyfault,
    "powershell": powershell,
    "reg": reg,
    "sc": sc,
    "schtasks": schtasks,
    "shutdown": shutdown,
    "wevtutil": wevtutil,
    "whoami": whoami,
}

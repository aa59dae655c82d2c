"""schtasks.exe: create, query, run, end, delete, change. Messages as recorded; exit code 1 on errors."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from chaos.lab.windows.files import read_file
from chaos.lab.windows.task_xml import TaskXmlError, format_task_xml, parse_task_xml
from chaos.lab.windows.tasks import RUNNING, Task, TaskDefinition, TimeTrigger
from chaos.lab.winshell.command_line import split_program
from chaos.lab.winshell.process import WinProcess

_MAX_COMMAND, _MAX_NAME = 262, 238
_NO_FILE = "ERROR: The system cannot find the file specified."
_COLUMNS = [
    *("HostName", "TaskName", "Next Run Time", "Status", "Logon Mode", "Last Run Time", "Last Result", "Author"),
    *("Task To Run", "Start In", "Comment", "Scheduled Task State", "Idle Time", "Power Management", "Run As User"),
    *("Delete Task If Not Rescheduled", "Stop Task If Runs X Hours and X Mins", "Schedule", "Schedule Type"),
    *("Start Time", "Start Date", "End Date", "Days", "Months", "Repeat: Every", "Repeat: Until: Time"),
    *("Repeat: Until: Duration", "Repeat: Stop If Still Running"),
]
_VALUED = frozenset({"/tn", "/tr", "/sc", "/st", "/sd", "/ru", "/rp", "/xml", "/fo", "/rl", "/delay"})
_BARE = frozenset({"/f", "/v", "/z", "/it", "/np", "/nh", "/enable", "/disable", "/hresult"})
_NEVER = "11/30/1999 12:00:00 AM"  # what Windows shows for a task that never ran


class _SyntaxError(ValueError):
    """A bad option or value."""


async def schtasks(process: WinProcess, arguments: list[str]) -> int:
    """``schtasks /create|/query|/run|/end|/delete|/change ...``."""
    verb = arguments[0].lower() if arguments else "/query"
    handler = _VERBS.get(verb)
    try:
        if handler is None:
            return process.fail(f"ERROR: Invalid argument/option - '{verb}'.\r\nType \"SCHTASKS /?\" for usage.")
        return handler(process, _options(verb, arguments[1:]))
    except _SyntaxError as error:
        return process.fail(f"ERROR: {error}")
    except TaskXmlError as error:
        return process.fail(
            f"ERROR: The task XML contains a value which is incorrectly formatted or out of range.\r\n{error}"
        )


def _options(verb: str, words: list[str]) -> dict[str, str]:
    """Options in lower case. Raises _SyntaxError."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        name = rest.pop(0).lower()
        if name == "/xml" and verb == "/query":
            options[name] = ""
        elif name in _VALUED:
            if not rest:
                raise _SyntaxError(f"Invalid syntax. Value expected for '{name}'.")
            options[name] = rest.pop(0)
        elif name in _BARE:
            options[name] = ""
        else:
            raise _SyntaxError(f"Invalid argument/option - '{name}'.")
    return options


def _task(process: WinProcess, options: dict[str, str]) -> Task:
    """The task of /tn. Raises _SyntaxError."""
    name = options.get("/tn", "")
    if not name:
        raise _SyntaxError("Invalid syntax. Mandatory option 'tn' is missing.")
    found = process.machine.tasks.get(name)
    if found is None:
        raise _SyntaxError(_NO_FILE.removeprefix("ERROR: "))
    return found


def _create(process: WinProcess, options: dict[str, str]) -> int:
    """Raises _SyntaxError, TaskXmlError."""
    name = options.get("/tn", "")
    if not name or len(name) > _MAX_NAME:
        raise _SyntaxError("Invalid syntax. Mandatory option 'tn' is missing.")
    if "/f" not in options and process.machine.tasks.get(name):
        raise _SyntaxError("Cannot create a file when that file already exists.")
    if "/xml" in options:
        text = read_file(process.machine.files, options["/xml"])
        if text is None:
            raise _SyntaxError(_NO_FILE.removeprefix("ERROR: "))
        definition = parse_task_xml(text)
    else:
        definition = _definition(process, options)
    process.machine.tasks.register(name, definition)
    process.line(f'SUCCESS: The scheduled task "{name}" has successfully been created.')
    return 0


def _definition(process: WinProcess, options: dict[str, str]) -> TaskDefinition:
    """Raises _SyntaxError."""
    line = options.get("/tr", "")
    if not line or len(line) > _MAX_COMMAND:
        raise _SyntaxError("Invalid syntax. Mandatory option 'tr' is missing.")
    command, arguments = split_program(line)
    schedule = options.get("/sc", "").lower()
    base = TaskDefinition(command, arguments, options.get("/ru", process.user), author=process.user)
    if schedule == "onstart":
        return replace(base, boot_delay=0.0)
    if schedule != "once":
        raise _SyntaxError("Invalid Schedule Type specified.")
    if "/z" in options:
        raise _SyntaxError("The task XML is missing a required element or attribute.")
    return replace(base, triggers=(TimeTrigger(_start(process, options)),))


def _start(process: WinProcess, options: dict[str, str]) -> float:
    """Time of /st and /sd (US date), to the minute; a time that is over today only warns. Raises _SyntaxError."""
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", options.get("/st", ""))
    if not match:
        raise _SyntaxError("Invalid Starttime value.")
    now = datetime.fromtimestamp(process.machine.clock.now, UTC)
    day = re.fullmatch(r"(\d\d)/(\d\d)/(\d{4})", options.get("/sd", now.strftime("%m/%d/%Y")))
    if not day:
        raise _SyntaxError("Invalid Startdate value.")
    at = datetime(int(day[3]), int(day[1]), int(day[2]), int(match[1]), int(match[2]), tzinfo=UTC).timestamp()
    if at < process.machine.clock.now:
        process.line("WARNING: The task may not run because /ST is earlier than current time.")
    return at


def _query(process: WinProcess, options: dict[str, str]) -> int:
    """Raises _SyntaxError."""
    if "/xml" in options:
        process.out(format_task_xml(_task(process, options)).replace("\n", "\r\n"))
        return 0
    tasks = [_task(process, options)] if "/tn" in options else process.machine.tasks.all()
    rows = [row for task in tasks for row in _rows(process, task)]
    if options.get("/fo", "table").lower() == "csv":
        columns = _COLUMNS if "/v" in options else ["TaskName", "Next Run Time", "Status"]
        _print_csv(process, columns, rows, header="/nh" not in options)
    elif options.get("/fo", "table").lower() == "list":
        for row in rows:
            process.line()
            columns = _COLUMNS if "/v" in options else ["HostName", "TaskName", "Next Run Time", "Status", "Logon Mode"]
            for column in columns:
                process.line(f"{column + ':':<37}{row[column]}")
    else:
        process.line()
        process.line("Folder: \\")
        process.line(f"{'TaskName':<40} {'Next Run Time':<22} {'Status':<15}")
        process.line(f"{'=' * 40} {'=' * 22} {'=' * 15}")
        for row in rows:
            process.line(f"{row['TaskName'].lstrip(chr(92)):<40} {row['Next Run Time']:<22} {row['Status']:<15}")
    return 0


def _print_csv(process: WinProcess, columns: list[str], rows: list[dict[str, str]], *, header: bool) -> None:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if header:
        writer.writerow(columns)
    writer.writerows([[row[column] for column in columns] for row in rows])
    process.out(text.getvalue())


def _rows(process: WinProcess, task: Task) -> list[dict[str, str]]:
    """One row per trigger. Dates as on an English (US) Windows."""
    definition = task.definition
    status = "Running" if task.last_result == RUNNING else "Ready" if definition.enabled else "Disabled"
    result = task.last_result - (1 << 32) if task.last_result >= 1 << 31 else task.last_result
    next_run = task.next_run(process.machine.clock.now)
    common = dict.fromkeys(_COLUMNS, "N/A") | {
        "HostName": process.machine.computer,
        "TaskName": task.name,
        "Next Run Time": "N/A" if next_run is None else _date_time(next_run),
        "Status": status,
        "Logon Mode": "Interactive/Background",
        "Last Run Time": _NEVER if task.last_run is None else _date_time(task.last_run),
        "Last Result": str(result),
        "Author": definition.author or "N/A",
        "Task To Run": definition.command_line,
        "Scheduled Task State": "Enabled" if definition.enabled else "Disabled",
        "Idle Time": "Disabled",
        "Power Management": "Stop On Battery Mode, No Start On Batteries",
        "Run As User": definition.user,
        "Delete Task If Not Rescheduled": "Disabled",
        "Stop Task If Runs X Hours and X Mins": _limit(definition.limit),
        "Schedule": "Scheduling data is not available in this format.",
    }
    rows = []
    for item in definition.triggers:
        date, _, time = _date_time(item.start).partition(" ")
        rows.append(common | {"Schedule Type": "One Time Only", "Start Time": time, "Start Date": date})
    if definition.boot_delay is not None:
        rows.append(common | {"Schedule Type": "At system start up"})
    return rows or [common]


def _limit(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours:02}:{rest // 60:02}:{rest % 60:02}" if seconds else "Disabled"


def _date_time(t: float) -> str:
    when = datetime.fromtimestamp(t, UTC)
    return f"{when.month}/{when.day}/{when.year} {when.strftime('%I:%M:%S %p').lstrip('0')}"


def _run(process: WinProcess, options: dict[str, str]) -> int:
    """Success says nothing of the result of the task. Raises _SyntaxError."""
    process.machine.tasks.run_now(_task(process, options))
    process.line(f'SUCCESS: Attempted to run the scheduled task "{options["/tn"]}".')
    return 0


def _end(process: WinProcess, options: dict[str, str]) -> int:
    """Raises _SyntaxError."""
    process.machine.tasks.end(_task(process, options))
    # no recording: the text
    process.line(f'SUCCESS: The scheduled task "{options["/tn"]}" has been terminated successfully.')
    return 0


def _delete(process: WinProcess, options: dict[str, str]) -> int:
    """Raises _SyntaxError."""
    name = options.get("/tn", "")
    if not process.machine.tasks.delete(name):
        raise _SyntaxError(f'The specified task name "{name}" does not exist in the system.')
    process.line(f'SUCCESS: The scheduled task "{name}" was successfully deleted.')
    return 0


def _change(process: WinProcess, options: dict[str, str]) -> int:
    """``/enable`` or ``/disable``. Raises _SyntaxError."""
    task = _task(process, options)
    if ("/enable" in options) == ("/disable" in options):
        raise _SyntaxError("Invalid syntax.")
    process.machine.tasks.change(task, enabled="/enable" in options)
    process.line(f'SUCCESS: The parameters of scheduled task "{options["/tn"]}" have been changed.')
    return 0


_VERBS: dict[str, Callable[[WinProcess, dict[str, str]], int]] = {
    "/create": _create,
    "/query": _query,
    "/run": _run,
    "/end": _end,
    "/delete": _delete,
    "/change": _change,
}

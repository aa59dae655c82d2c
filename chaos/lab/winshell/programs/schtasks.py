"""schtasks.exe: query, run, end, delete. Messages as recorded, dates as on an English Windows; errors exit with 1."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

from chaos.lab.windows.task_xml import format_task_xml
from chaos.lab.windows.tasks import RUNNING, Task
from chaos.lab.winshell.process import WinProcess

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

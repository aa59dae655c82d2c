"""Cmdlets of the module ScheduledTasks. No recording: the texts of errors."""

from __future__ import annotations

from chaos.lab.windows.task_xml import TaskXmlError, parse_task_xml
from chaos.lab.windows.tasks import RUNNING, Task
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.operators import apply
from chaos.lab.winshell.pwsh.values import TICKS, DateTime, NetObject, ScriptError, Value, to_text

_MODULE = "ScheduledTasks"


def _error(message: str, code: int, command: str, name: str) -> ScriptError:
    category = f"NotSpecified: (PS_ScheduledTask:Root/Microsoft/...S_ScheduledTask) [{command}], CimException"
    return ScriptError(
        message, f"HRESULT 0x{code:08x}" if code else f"CmdletizationQuery_NotFound_TaskName,{name}", category
    )


def _find(call: Invocation) -> list[Task]:
    """Tasks by name, which may have wildcards. Raises ScriptError."""
    pattern = call.text("TaskName") or "*"
    found = [task for task in call.process.machine.tasks.all() if apply("like", task.name.lstrip("\\"), pattern)]
    if not found and "*" not in pattern:
        text = f"No MSFT_ScheduledTask objects found with property 'TaskName' equal to '{pattern}'."
        raise ScriptError(
            f"{text}  Verify the value of the property and retry.",
            "CmdletizationQuery_NotFound_TaskName",
            f"ObjectNotFound: ({pattern}:String) [], CimJobException",
        )
    return found


def _as_object(task: Task) -> NetObject:
    state = "Running" if task.last_result == RUNNING else "Ready" if task.definition.enabled else "Disabled"
    properties = {"TaskName": task.name.rpartition("\\")[2], "TaskPath": "\\", "State": state}
    return NetObject("MSFT_ScheduledTask", {**properties, "Author": task.definition.author or None})


async def _register(call: Invocation) -> list[Value]:
    tasks, name = call.process.machine.tasks, call.text("TaskName")
    if tasks.get(name) is not None and not call.is_set("Force"):
        text = "Cannot create a file when that file already exists."
        raise _error(text, 0x800700B7, "Register-ScheduledTask", name)
    try:
        definition = parse_task_xml(call.text("Xml"))
    except TaskXmlError as error:
        text = f"The task XML contains a value which is incorrectly formatted or out of range.\r\n{error}"
        raise _error(text, 0x80041318, "Register-ScheduledTask", name) from error
    return [_as_object(tasks.register(name, definition))]


async def _unregister(call: Invocation) -> list[Value]:
    """Without -Confirm:$false the cmdlet would ask, which -NonInteractive refuses."""
    found = _find(call)
    if call.is_set("Confirm") or "Confirm" not in call.values:
        text = "Windows PowerShell is in NonInteractive mode. Read and Prompt functionality is not available."
        raise ScriptError(text, "InvalidOperation", "InvalidOperation: (:) [], PSInvalidOperationException")
    for task in found:
        call.process.machine.tasks.delete(task.name)
    return []


async def _get(call: Invocation) -> list[Value]:
    return [_as_object(task) for task in _find(call)]


async def _info(call: Invocation) -> list[Value]:
    names = [to_text(item.properties["TaskName"]) for item in call.input if isinstance(item, NetObject)]
    for name in names:
        call.values["TaskName"] = name
    clock = call.process.machine.clock
    found: list[Value] = []
    for task in _find(call):
        next_run = task.next_run(clock.now)
        properties = {
            "TaskName": task.name.rpartition("\\")[2],
            "LastRunTime": None if task.last_run is None else DateTime(round(task.last_run * TICKS)),
            "LastTaskResult": task.last_result,
            "NextRunTime": None if next_run is None else DateTime(round(next_run * TICKS)),
        }
        found.append(NetObject("MSFT_TaskDynamicInfo", properties))
    return found


async def _start(call: Invocation) -> list[Value]:
    for task in _find(call):
        call.process.machine.tasks.run_now(task)
    return []


async def _stop(call: Invocation) -> list[Value]:
    for task in _find(call):
        call.process.machine.tasks.end(task)
    return []


_NAME = ("TaskName", "TaskPath")
CMDLETS: dict[str, Cmdlet] = {
    "Register-ScheduledTask": Cmdlet(
        _register, (*_NAME, "Xml", "User"), ("Force",), ("TaskName",), ("TaskName", "Xml"), _MODULE
    ),
    "Unregister-ScheduledTask": Cmdlet(_unregister, _NAME, (), ("TaskName",), ("TaskName",), _MODULE),
    "Get-ScheduledTask": Cmdlet(_get, _NAME, (), ("TaskName",), (), _MODULE),
    "Get-ScheduledTaskInfo": Cmdlet(_info, _NAME, (), ("TaskName",), (), _MODULE),
    "Start-ScheduledTask": Cmdlet(_start, _NAME, (), ("TaskName",), ("TaskName",), _MODULE),
    "Stop-ScheduledTask": Cmdlet(_stop, _NAME, (), ("TaskName",), ("TaskName",), _MODULE),
}

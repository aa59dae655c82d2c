"""Tasks as XML: parsed as Register-ScheduledTask does, formatted as ``schtasks /query /xml``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

from chaos.lab.windows.tasks import Task, TaskDefinition

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_N = {"t": NAMESPACE}
_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_SYSTEM_SID = "S-1-5-18"
_DEFAULT_LIMIT = "PT72H"
# Every element that the lab simulates, or that has no effect on a simulated machine.
_KNOWN = {
    *("RegistrationInfo", "URI", "Triggers", "TimeTrigger", "StartBoundary", "BootTrigger"),
    *("Principals", "Principal", "UserId", "RunLevel", "Actions", "Exec", "Command", "Arguments"),
    *("Settings", "DisallowStartIfOnBatteries", "StopIfGoingOnBatteries", "StartWhenAvailable", "ExecutionTimeLimit"),
    *("MultipleInstancesPolicy", "Enabled"),
}
_FIXED = {"MultipleInstancesPolicy": "IgnoreNew", "Enabled": "true", "UserId": _SYSTEM_SID}


class TaskXmlError(ValueError):
    """The XML is not a task, or needs what the lab does not simulate."""


def parse_task_xml(text: str) -> TaskDefinition:
    """Parse the XML of a task. Raises TaskXmlError."""
    root = _root(text)
    for item in list(root.iter())[1:]:
        name = item.tag.removeprefix(f"{{{NAMESPACE}}}")
        if name not in _KNOWN or (item.text or "") != _FIXED.get(name, item.text or ""):
            raise TaskXmlError(f"{name}: the lab does not simulate it")
    command = root.findtext("t:Actions/t:Exec/t:Command", "", _N)
    if not command:
        raise TaskXmlError("Actions")
    return TaskDefinition(
        command,
        root.findtext("t:Actions/t:Exec/t:Arguments", "", _N),
        "SYSTEM",
        tuple(_time(item.text or "") for item in root.iterfind("t:Triggers/t:TimeTrigger/t:StartBoundary", _N)),
        root.find("t:Triggers/t:BootTrigger", _N) is not None,
        root.findtext("t:Settings/t:StartWhenAvailable", "false", _N) == "true",
        parse_span(root.findtext("t:Settings/t:ExecutionTimeLimit", _DEFAULT_LIMIT, _N)),
        text,
    )


def _root(text: str) -> ElementTree.Element:
    """Raises TaskXmlError."""
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))  # noqa: S314 - the lab's own user wrote it
    except ElementTree.ParseError as error:
        raise TaskXmlError(str(error)) from error
    if root.tag != f"{{{NAMESPACE}}}Task":
        raise TaskXmlError(f"(1,1):{root.tag}:")
    return root


def _time(text: str) -> float:
    """An ISO time; local time is UTC here. Raises TaskXmlError."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise TaskXmlError(f"StartBoundary:{text}") from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def parse_span(text: str) -> float:
    """Parse an XML duration in days, hours, minutes, seconds; in seconds. Raises TaskXmlError."""
    match = _SPAN.fullmatch(text)
    if not match or not any(match.groups()):
        raise TaskXmlError(f"Duration:{text}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def format_task_xml(task: Task) -> str:
    """What was registered, with the task's URI."""
    ElementTree.register_namespace("", NAMESPACE)
    root = _root(task.definition.source)
    info = ElementTree.Element(f"{{{NAMESPACE}}}RegistrationInfo")
    ElementTree.SubElement(info, f"{{{NAMESPACE}}}URI").text = task.name
    root.insert(0, info)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-16"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'

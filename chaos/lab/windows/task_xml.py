"""Tasks as XML: parsed as Register-ScheduledTask and ``schtasks /create`` do, formatted as ``schtasks /query /xml``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import cast, get_args
from xml.etree import ElementTree

from chaos.lab.windows.tasks import DEFAULT_LIMIT, Policy, Task, TaskDefinition, TimeTrigger

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_N = {"t": NAMESPACE}
_SPAN = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_SECTIONS = ("RegistrationInfo", "Triggers", "Principals", "Settings", "Data", "Actions")
_COMMON = ("Enabled", "StartBoundary", "EndBoundary", "ExecutionTimeLimit")
_TRIGGERS = {"TimeTrigger": _COMMON, "BootTrigger": (*_COMMON, "Delay")}
_SYSTEM = ("S-1-5-18", "SYSTEM", "NT AUTHORITY\\SYSTEM")
_UNLIMITED = "PT0S"


class TaskXmlError(ValueError):
    """The XML is not a task, or needs what the lab does not simulate."""


def parse_task_xml(text: str) -> TaskDefinition:
    """Parse the XML of a task. Raises TaskXmlError."""
    root = _root(text)
    for item in root:
        if item.tag.rpartition("}")[2] not in _SECTIONS:
            raise TaskXmlError(f"(1,1):{item.tag.rpartition('}')[2]}:")
    command = root.findtext("t:Actions/t:Exec/t:Command", "", _N)
    if not command:
        raise TaskXmlError("Actions")
    boots = [item for item in _triggers(root) if item.tag.endswith("}BootTrigger")]
    limit = root.findtext("t:Settings/t:ExecutionTimeLimit", "", _N)
    policy = root.findtext("t:Settings/t:MultipleInstancesPolicy", "IgnoreNew", _N)
    if policy not in get_args(Policy):
        raise TaskXmlError(f"MultipleInstancesPolicy:{policy}")
    return TaskDefinition(
        command,
        root.findtext("t:Actions/t:Exec/t:Arguments", "", _N),
        _user(root.findtext("t:Principals/t:Principal/t:UserId", "SYSTEM", _N)),
        tuple(_time_trigger(item) for item in _triggers(root) if item.tag.endswith("}TimeTrigger")),
        parse_span(boots[0].findtext("t:Delay", _UNLIMITED, _N)) if boots else None,
        _flag(root, "StartWhenAvailable", default=False),
        _flag(root, "Enabled", default=True),
        root.findtext("t:RegistrationInfo/t:Author", "", _N),
        parse_span(limit) if limit else DEFAULT_LIMIT,
        cast("Policy", policy),
        text,
    )


def _root(text: str) -> ElementTree.Element:
    """Raises TaskXmlError."""
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text.lstrip("\ufeff")))  # noqa: S314 - the lab's own user wrote it
    except ElementTree.ParseError as error:
        raise TaskXmlError(str(error)) from error
    if root.tag != f"{{{NAMESPACE}}}Task":
        raise TaskXmlError(f"(1,1):{root.tag}:")
    return root


def _triggers(root: ElementTree.Element) -> list[ElementTree.Element]:
    """Triggers that are enabled. Raises TaskXmlError for a kind that the lab does not simulate."""
    found = list(root.find("t:Triggers", _N) or ())
    for item in found:
        kind = item.tag.rpartition("}")[2]
        for part in item:
            if kind not in _TRIGGERS or part.tag.rpartition("}")[2] not in _TRIGGERS[kind]:
                raise TaskXmlError(f"{kind}:{part.tag.rpartition('}')[2]}: the lab does not simulate it")
        if kind not in _TRIGGERS:
            raise TaskXmlError(f"{kind}: the lab does not simulate it")
    return [item for item in found if item.findtext("t:Enabled", "true", _N) == "true"]


def _time_trigger(item: ElementTree.Element) -> TimeTrigger:
    """Raises TaskXmlError."""
    end = item.findtext("t:EndBoundary", "", _N)
    start = parse_local_time(item.findtext("t:StartBoundary", "", _N))
    return TimeTrigger(start, parse_local_time(end) if end else None)


def _user(text: str) -> str:
    return "SYSTEM" if text.upper() in _SYSTEM else text


def _flag(root: ElementTree.Element, name: str, *, default: bool) -> bool:
    """Raises TaskXmlError."""
    text = root.findtext(f"t:Settings/t:{name}", str(default).lower(), _N).strip()
    if text not in ("true", "false", "1", "0"):
        raise TaskXmlError(f"{name}:{text}")
    return text in ("true", "1")


def parse_local_time(text: str) -> float:
    """Parse an ISO time; local time is UTC here. Raises TaskXmlError."""
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
    """Format a task as ``schtasks /query /xml`` does: what was registered, with the task's URI and state."""
    ElementTree.register_namespace("", NAMESPACE)
    root = _root(task.definition.source) if task.definition.source else _from_definition(task.definition)
    info = root.find("t:RegistrationInfo", _N)
    if info is None:
        info = ElementTree.Element(_tag("RegistrationInfo"))
        root.insert(0, info)
    _set(info, "URI", task.name)
    settings = root.find("t:Settings", _N)
    if settings is None:
        settings = ElementTree.SubElement(root, _tag("Settings"))
    if not task.definition.enabled or settings.find("t:Enabled", _N) is not None:
        _set(settings, "Enabled", str(task.definition.enabled).lower())
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-16"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _from_definition(definition: TaskDefinition) -> ElementTree.Element:
    """XML of a task that has options in place of XML."""
    root = ElementTree.Element(_tag("Task"), {"version": "1.2"})
    if definition.author:
        _set(ElementTree.SubElement(root, _tag("RegistrationInfo")), "Author", definition.author)
    triggers = ElementTree.SubElement(root, _tag("Triggers"))
    for item in definition.triggers:
        text = datetime.fromtimestamp(item.start, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _set(ElementTree.SubElement(triggers, _tag("TimeTrigger")), "StartBoundary", text)
    if definition.boot_delay is not None:
        ElementTree.SubElement(triggers, _tag("BootTrigger"))
    principal = ElementTree.SubElement(ElementTree.SubElement(root, _tag("Principals")), _tag("Principal"))
    _set(principal, "UserId", definition.user)
    ElementTree.SubElement(root, _tag("Settings"))
    execution = ElementTree.SubElement(ElementTree.SubElement(root, _tag("Actions")), _tag("Exec"))
    _set(execution, "Command", definition.command)
    if definition.arguments:
        _set(execution, "Arguments", definition.arguments)
    return root


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _set(parent: ElementTree.Element, name: str, text: str) -> None:
    found = parent.find(f"t:{name}", _N)
    if found is None:
        found = ElementTree.SubElement(parent, _tag(name))
    found.text = text

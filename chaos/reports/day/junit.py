"""``junit.xml`` of a day: a suite for each cluster, a case for each run.

A violated run is a failure. One that was not decided, interrupted, skipped or has not begun must not look green, but is
no failure of the cluster: an error of that type.
"""

from __future__ import annotations

from datetime import UTC
from xml.etree import ElementTree as ET

from chaos.core.text import printable
from chaos.reports.day.lessons import surprises
from chaos.reports.day.markdown import lesson_text
from chaos.reports.day.texts import details
from chaos.reports.day.view import DayView, RunView, moment_of

_OUTCOMES = {"held": "", "violated": "failure"}


def render(view: DayView) -> str:
    """The XML document, ending in a newline."""
    root = ET.Element("testsuites")
    for number, cluster in enumerate(view.clusters):
        _add_suite(root, view, number, cluster)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ET.Element, view: DayView, number: int, cluster: str) -> None:
    runs = [run for run in view.runs if run.cluster == cluster]
    outcomes = [_OUTCOMES.get(run.word, "error") for run in runs]
    created = moment_of(view.records[number].state.created)
    attributes = {
        "package": "nodefall",
        "id": str(number),
        "name": printable(f"{view.gameday} on {cluster}"),
        "hostname": "localhost",
        "timestamp": created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if created else "1970-01-01T00:00:00",
        "tests": str(len(runs)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "time": _seconds(sum(run.seconds or 0.0 for run in runs)),
    }
    suite = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(suite, "properties")
    for name, value in details(view):
        ET.SubElement(properties, "property", {"name": printable(name), "value": printable(value)})
    for run, outcome in zip(runs, outcomes, strict=True):
        _add_case(suite, view, run, outcome)
    ET.SubElement(suite, "system-out").text = printable(view.headline)
    ET.SubElement(suite, "system-err")


def _add_case(suite: ET.Element, view: DayView, run: RunView, outcome: str) -> None:
    classname = f"nodefall.{printable(view.gameday)}.{printable(run.entry.experiment)}"
    attributes = {"name": printable(str(run.run.key)), "classname": classname, "time": _seconds(run.seconds or 0.0)}
    case = ET.SubElement(suite, "testcase", attributes)
    if not outcome:
        return
    message = printable(run.run.reason or run.word)
    lines = [message, *(printable(f"{each.kind}: {lesson_text(each)}") for each in surprises(view, run))]
    ET.SubElement(case, outcome, {"type": run.word, "message": message}).text = "\n".join(lines)


def _seconds(value: float) -> str:
    return f"{value:.3f}"

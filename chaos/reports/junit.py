"""JUnit documents in the common schema (Windyroad's XSD, a subset of Jenkins')."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from chaos.core.text import printable


@dataclass(frozen=True, slots=True)
class Case:
    """A test case. ``outcome`` is failure, error or "" for passed; ``type`` is the error type."""

    classname: str
    name: str
    seconds: float = 0.0
    outcome: str = ""
    type: str = ""
    message: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """Test cases. ``timestamp``: xs:dateTime in UTC without a zone, as the schema requires."""

    name: str
    timestamp: str
    seconds: float
    properties: Sequence[tuple[str, str]]
    cases: Sequence[Case]
    output: Sequence[str]


def junit_document(suites: Iterable[Suite]) -> str:
    """The XML document, ending in a newline."""
    root = ET.Element("testsuites")  # no attributes: the schema has none here
    for number, suite in enumerate(suites):
        _add_suite(root, number, suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ET.Element, number: int, suite: Suite) -> None:
    outcomes = [case.outcome for case in suite.cases]
    attributes = {
        "package": "nodefall",
        "id": str(number),
        "name": printable(suite.name),
        "hostname": "localhost",
        "timestamp": suite.timestamp,
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "time": _seconds(suite.seconds),
    }
    element = ET.SubElement(root, "testsuite", attributes)
    properties = ET.SubElement(element, "properties")
    for name, value in suite.properties:
        ET.SubElement(properties, "property", {"name": printable(name), "value": printable(value)})
    for case in suite.cases:
        _add_case(element, case)
    ET.SubElement(element, "system-out").text = "\n".join(map(printable, suite.output))
    ET.SubElement(element, "system-err")


def _add_case(suite: ET.Element, case: Case) -> None:
    attributes = {"name": printable(case.name), "classname": case.classname, "time": _seconds(case.seconds)}
    element = ET.SubElement(suite, "testcase", attributes)
    if case.outcome:
        error = {"type": case.type, "message": printable(case.message)}
        ET.SubElement(element, case.outcome, error).text = "\n".join(map(printable, case.details))


def _seconds(value: float) -> str:
    return f"{max(0.0, value):.3f}"

"""The time words of expectations, each with worked examples, which tests judge with the judge's own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_VALUES = {"T": "true", "F": "false", "?": "not observed"}
_REPLACED = "assert: pods-rescheduled, with: {node: victim}"
_STARTS = "assert: pods-started, with: {node: victim}"
_READY = "assert: nodes-ready, with: {not-ready-at-most: 1}"
_AVAILABLE = "assert: workload-available, with: {namespace: workload}"
_UNKNOWN = "assert: node-condition, with: {node: victim, status: Unknown}"


@dataclass(frozen=True, slots=True)
class Case:
    """One history and what becomes of it.

    ``changes``: values with the second after the anchor from which they hold, the first one from before it:
    ``F T41 ?50`` is false, true from 41 s on, and not observed from 50 s on. Without ``changes`` the case is about a
    moment or a deadline, and ``given`` names what it depends on. ``seconds``: the moment of the verdict, the moment
    that the word means, or the deadline.
    """

    changes: str
    status: str
    seconds: float
    because: str
    given: str = ""

    @property
    def history(self) -> str:
        """``changes`` in words."""
        if not self.changes:
            return self.given
        first, *rest = self.changes.split()
        return ", ".join((_VALUES[first], *(f"{_VALUES[word[0]]} from {word[1:]} s on" for word in rest)))


@dataclass(frozen=True, slots=True)
class TimeWord:
    """``example``: an expectation in YAML that has the word."""

    summary: str
    example: str
    cases: tuple[Case, ...]


TIME_WORDS: Mapping[str, TimeWord] = {
    "within": TimeWord(
        "true at some moment up to the bound; already true counts",
        f"{{{_REPLACED}, after: power-off, within: 60s}}",
        (
            Case("F T41", "held", 41, "it came true in time; what follows does not matter"),
            Case("T F5", "held", 0, "it was true when judging started"),
            Case("F T70", "violated", 60, "it came true 10 s late"),
            Case("F ?50 T65", "inconclusive", 50, "it may have come true while it was not observed"),
        ),
    ),
    "for": TimeWord(
        "with within: how long it must stay true from then on",
        f"{{{_AVAILABLE}, after: power-off, within: 60s, for: 30s}}",
        (
            Case("F T41 F80", "held", 41, "it was true for 39 s"),
            Case("F T41 F60", "violated", 60, "it was true for 19 s only"),
            Case("F T41 F50 T58", "held", 58, "the second time it stayed true; only its start has to be in time"),
            Case("F T41 ?60 T65 F80", "inconclusive", 41, "it may have been false while it was not observed"),
        ),
    ),
    "never": TimeWord(
        "false throughout, up to the start of a step (until) or for a time (for)",
        f"{{{_STARTS}, after: power-off, never: {{for: 60s}}}}",
        (
            Case("F", "held", 60, "it was false all the time"),
            Case("F T61", "held", 60, "what comes later does not matter"),
            Case("F T12 F13", "violated", 12, "once is too often"),
            Case("F ?20 F24", "inconclusive", 20, "it may have been true while it was not observed"),
        ),
    ),
    "always": TimeWord(
        "true throughout, up to the start of a step (until) or for a time (for)",
        f"{{{_READY}, after: power-off, always: {{for: 60s}}}}",
        (
            Case("T", "held", 60, "it was true all the time"),
            Case("T F33 T34", "violated", 33, "once is too often"),
            Case("F T1", "violated", 0, "it was false when judging started"),
            Case("T ?20 T24", "inconclusive", 20, "it may have been false while it was not observed"),
        ),
    ),
    "until": TimeWord(
        "in never and always: up to the start of this step",
        f"{{{_STARTS}, after: power-off, never: {{until: power-on}}}}",
        (
            Case("F T95", "held", 90, "power-on began at 90 s, before it came true"),
            Case("F T85", "violated", 85, "it came true 5 s before power-on"),
        ),
    ),
    "after": TimeWord(
        "when judging starts: a step (its start), end(step) (its return), or one of them + a time",
        f"{{{_REPLACED}, after: end(drain) + 30s, within: 60s}}",
        (
            Case("", "", 0, "the start of the step", "after: drain"),
            Case("", "", 30, "30 s after its start", "after: drain + 30s"),
            Case("", "", 20, "its return, if the drain took 20 s", "after: end(drain)"),
            Case("", "", 50, "30 s after its return", "after: end(drain) + 30s"),
        ),
    ),
    "order": TimeWord(
        "the named hypotheses first come true in this order; ties are allowed",
        "{name: taint before eviction, order: [the node is tainted, a pod is evicted]}",
        (
            Case("", "held", 0, "they came true in this order", "the taint at 45 s, the eviction at 345 s"),
            Case("", "held", 0, "at the same moment is in order", "both at 45 s"),
            Case("", "violated", 0, "the eviction came true 5 s before", "the taint at 45 s, the eviction at 40 s"),
            Case("", "violated", 0, "the eviction never came true", "the taint at 45 s, no eviction"),
        ),
    ),
    "timing": TimeWord(
        "timing: loose multiplies the seconds that the bound adds by cluster.slack of the inventory; facts stay",
        f"{{{_UNKNOWN}, after: cut, within: controller.nodeMonitorGracePeriod + 15s, timing: loose}}",
        (
            Case("", "", 55, "40 s + 15 s", "nodeMonitorGracePeriod 40 s, slack 1"),
            Case("", "", 70, "40 s + 2 x 15 s", "nodeMonitorGracePeriod 40 s, slack 2"),
        ),
    ),
    "baseline": TimeWord(
        "the bound is at least this many times the slowest start of a pod of the workload in this run",
        f"{{{_REPLACED}, after: power-off, within: 20s, baseline: 3x}}",
        (
            Case("", "", 36, "3 x 12 s is later than 20 s", "slowest start 12 s"),
            Case("", "", 20, "3 x 4 s is not later than 20 s", "slowest start 4 s"),
        ),
    ),
}


def describe(name: str) -> dict[str, Any]:
    """The documentation of a time word as JSON. Raises KeyError."""
    word = TIME_WORDS[name]
    cases = [
        {"given": case.history, "status": case.status, "seconds": case.seconds, "because": case.because}
        for case in word.cases
    ]
    return {"kind": "time word", "name": name, "summary": word.summary, "example": word.example, "worked": cases}


def worked_lines(cases: list[dict[str, Any]]) -> list[str]:
    """The worked examples of :func:`describe` as aligned lines."""
    outcomes = [_outcome(case) for case in cases]
    given, outcome = (max(map(len, column)) for column in ([case["given"] for case in cases], outcomes))
    return [
        f"  {case['given']:<{given}}  {text:<{outcome}}  {case['because']}"
        for case, text in zip(cases, outcomes, strict=True)
    ]


def _outcome(case: dict[str, Any]) -> str:
    """``held at 41 s``, or the seconds of a moment or deadline; an order has no moment."""
    if not case["status"]:
        return f"{case['seconds']:g} s"
    is_at_moment = case["seconds"] or "from" in case["given"]
    return f"{case['status']} at {case['seconds']:g} s" if is_at_moment else str(case["status"])

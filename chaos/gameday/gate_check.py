"""Evaluates the gates of a game day. What they ask is behind :class:`GateContext`; what the answers mean is here.

A gate whose answer is unknown does not hold: no response in time, nonsense, no series, a value that is no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Protocol, TypeVar

from msgspec import Struct

from chaos.core.duration import parse_duration
from chaos.core.errors import Aborted, NodefallError
from chaos.core.metrics import AlertingRule
from chaos.core.ports import Response
from chaos.core.recording import Series
from chaos.core.text import printable
from chaos.gameday.document import (
    AlertsGate,
    ApprovalGate,
    DoctorGate,
    ErrorBudgetGate,
    Gate,
    HttpGate,
    OtherRunGate,
    PrometheusGate,
)

T = TypeVar("T")
_SHOWN = 3  # of several findings in one reason
_MAX_REASON = 400  # characters
_REDIRECTS = range(300, 400)
_AFTER_DEADLINE = 2.0  # seconds for which a request outlasts the deadline of its gate, which is what is reported


class GateResult(Struct, frozen=True):
    """The answer of one gate. ``holds``: None if that is unknown, which never counts as holding.

    ``gate`` describes the gate as in the plan. ``reason``: one line, what was seen, or ``<what failed>: <why>``.
    """

    gate: str
    holds: bool | None
    reason: str


class GateContext(Protocol):
    """What gates ask. Every method raises NodefallError if there is no valid answer."""

    @property
    def plan_hash(self) -> str:
        """Of the plan of the day."""

    def within(self, seconds: float, name: str, ask: Callable[[], T]) -> T:
        """What ``ask`` returns or raises; NodefallError after ``seconds`` of wall time. ``name``: of what is asked."""

    def query(self, promql: str) -> Sequence[Series]:
        """Current values, from the Prometheus of the inventory."""

    def alerting_rules(self) -> Sequence[AlertingRule]:
        """All alerting rules of the Prometheus of the inventory."""

    def get(self, url: str, seconds: float, *, with_body: bool) -> Response:
        """The answer to a GET, redirects not followed."""

    def refusals(self) -> Sequence[str]:
        """What preflight refuses, one sentence each."""

    def lock_holder(self) -> str:
        """Who holds the lock of the cluster, "" if it is free."""

    def pending_undo(self) -> Sequence[str]:
        """Pending undo of any run on the cluster, one sentence each."""

    def is_approved(self, by: Sequence[str]) -> bool:
        """Whether one of these persons has approved the plan of the day."""


def check_gates(gates: Sequence[Gate], context: GateContext) -> list[GateResult]:
    """The answers of ``gates`` in their order, each after at most its timeout. Raises Aborted if the day stops."""
    return [check_gate(gate, context) for gate in gates]


def check_gate(gate: Gate, context: GateContext) -> GateResult:
    """The answer of one gate."""
    seconds = parse_duration(gate.timeout)
    try:
        holds, reason = context.within(seconds, str(gate), lambda: _check(gate, context))
    except Aborted:
        raise  # the day stops, as it is halted: that is no answer of the gate
    except NodefallError as error:
        holds, reason = None, error.message
    return GateResult(printable(str(gate), _MAX_REASON), holds, printable(reason, _MAX_REASON))


_Answer = tuple[bool | None, str]


@singledispatch
def _check(gate: object, context: GateContext) -> _Answer:  # noqa: ARG001 - the registered functions use it
    raise TypeError(f"unknown gate {gate!r}")


@_check.register
def _(gate: PrometheusGate, context: GateContext) -> _Answer:
    values = _values(context.query(gate.query), gate.query)
    least = gate.at_least if gate.at_least is not None else float("-inf")
    most = gate.at_most if gate.at_most is not None else float("inf")
    return _all_within(values, least, most)


@_check.register
def _(gate: ErrorBudgetGate, context: GateContext) -> _Answer:
    values = _values(context.query(gate.query), gate.query)
    for labels, value in values:
        if value > 1:  # below 0, the budget is overspent
            return (
                None,
                f"error budget: {_named(labels, value)} is not between 0 and 1; divide a percentage by 100",
            )
    return _all_within(values, gate.at_least, 1.0)


@_check.register
def _(gate: HttpGate, context: GateContext) -> _Answer:
    seconds = parse_duration(gate.timeout) + _AFTER_DEADLINE
    response = context.get(gate.url, seconds, with_body=gate.contains is not None)
    if response.status != gate.status:
        redirect = "; redirects are not followed" if response.status in _REDIRECTS else ""
        return False, f"it answers {response.status}{redirect}"
    if gate.contains is not None and gate.contains.encode() not in response.body:
        return False, f"it answers {response.status}, but without {gate.contains!r} in {len(response.body)} bytes"
    return True, f"it answers {response.status}"


@_check.register
def _(gate: AlertsGate, context: GateContext) -> _Answer:
    rules = [rule for rule in context.alerting_rules() if rule.may_match(gate.match_labels)]
    firing = [alert for rule in rules for alert in rule.firing_with(gate.match_labels)]
    if firing:
        return False, _some([_describe_labels(alert) for alert in firing], "firing: ")
    if not rules:
        return None, "alerts: Prometheus has no alerting rule that could fire with these labels"
    failed = [f"{rule.name}: {rule.error}" for rule in rules if rule.error]
    if failed:
        return None, _some(failed, "alerts: a rule cannot be evaluated: ")
    return True, f"none of {len(rules)} alerting rules fires"


@_check.register
def _(gate: DoctorGate, context: GateContext) -> _Answer:  # noqa: ARG001 - chosen by its type
    refusals = context.refusals()
    return (False, _some(refusals)) if refusals else (True, "doctor refuses nothing")


@_check.register
def _(gate: OtherRunGate, context: GateContext) -> _Answer:  # noqa: ARG001 - chosen by its type
    if holder := context.lock_holder():
        return False, f"{holder} holds the lock of the cluster"
    pending = context.pending_undo()
    return (False, _some(pending)) if pending else (True, "no other run, and no pending undo")


@_check.register
def _(gate: ApprovalGate, context: GateContext) -> _Answer:
    plan = f"plan {context.plan_hash[:12]}"
    persons = " or ".join(gate.by)
    return (True, f"{plan} is approved") if context.is_approved(gate.by) else (False, f"{plan} awaits {persons}")


_Value = tuple[dict[str, str], float]  # of a series, with its labels


def _values(series: Sequence[Series], query: str) -> list[_Value]:
    """The value of each series. Raises NodefallError if there is none, or one is unknown."""
    if not series:
        raise NodefallError(f"{query}: the result has no series")
    found = []
    for each in series:
        if len(each.values) != 1:
            raise NodefallError(f"{query}: the result is a range, not one value for each series")
        value = each.values[0][1]
        if value is None:
            raise NodefallError(f"{query}: the value{_of(each.labels)} is not a number")
        found.append((each.labels, value))
    return found


def _all_within(values: Sequence[_Value], least: float, most: float) -> _Answer:
    outside = [(labels, value) for labels, value in values if not least <= value <= most]
    if outside:
        return False, _some([_named(*each) for each in outside])
    return True, _some([_named(*each) for each in values])


def _named(labels: dict[str, str], value: float) -> str:
    return f"{value:g}{_of(labels)}"


def _of(labels: dict[str, str]) -> str:
    return f" of {_describe_labels(labels)}" if labels else ""


def _describe_labels(labels: dict[str, str]) -> str:
    name = labels.get("alertname") or labels.get("__name__") or ""
    rest = ", ".join(f"{key}={value}" for key, value in labels.items() if key not in ("alertname", "__name__"))
    return f"{name}{{{rest}}}" if rest else name or "{}"


def _some(findings: Sequence[str], prefix: str = "") -> str:
    more = f" and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
    return prefix + "; ".join(findings[:_SHOWN]) + more

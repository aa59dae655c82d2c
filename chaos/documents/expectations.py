"""Checks of expectations (steady state, hypotheses, abort conditions) and of the plug-ins that an experiment uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

from chaos.core.assertion import Assertion
from chaos.core.duration import parse_bound
from chaos.core.experiment import parse_moment
from chaos.core.registry import PluginRegistry
from chaos.documents.problems import Cursor, check_model
from chaos.documents.wording import did_you_mean

ENDPOINT_SHARES = ("success-at-least", "p50-below", "p90-below", "p95-below", "p99-below")
_TEMPORAL_KEYS = ("after", "within", "for", "never", "always", "timing", "baseline", "order")
_KNOWN = "a known violation is that of a hypothesis"
_PER_POD = ("pods", "pods-started", "grace-respected")
_ALL = "all"


class Plugin(Protocol):
    """The common part of actions and assertions."""

    @property
    def params(self) -> type[BaseModel]: ...


P = TypeVar("P", bound=Plugin)


def report_duplicates(cursors: Iterable[Cursor], what: str) -> None:
    """Report each name that an earlier cursor has."""
    first: dict[str, int] = {}
    for cursor in cursors:
        if cursor.text and cursor.entry:
            line = first.setdefault(cursor.text, cursor.entry.node.mark.line)
            if line != cursor.entry.node.mark.line:
                cursor.report(f"duplicate {what} {cursor.text!r}, first in line {line}")


def find_plugin(owner: Cursor, key: str, what: str, known: Mapping[str, P]) -> P | None:
    """The plug-in named by ``key`` of ``owner``; its ``with`` is checked. None and a report if it is unknown."""
    name = owner.get(key)
    if not name.text:
        return None
    plugin = known.get(name.text)
    if plugin is None:
        name.report(f"unknown {what} {name.text!r}", did_you_mean(name.text, known))
        return None
    given = owner.get("with")
    place = given or name
    if place.node and (given.keys() or not given):
        check_model(plugin.params, place.node, given.value or {}, owner.errors)
    return plugin


@dataclass(frozen=True, slots=True)
class DeclaredNames:
    """Names that the experiment declares."""

    targets: list[str]
    steps: list[str]
    hypotheses: list[str]
    measurements: dict[str, list[str]]  # names of probes and queries, by the parameter that refers to one


def check_expectations(spec: Cursor, names: DeclaredNames, registry: PluginRegistry) -> None:
    """Report problems of the expectations of ``spec``."""
    for part in ("steadyState", "hypothesis", "abort"):
        for expectation in spec.get(part).items():
            _check_assertion(expectation, names, registry)
            _check_shares(expectation)
            _check_bounds(expectation, registry)
            _check_moments(expectation, names.steps)
    for expectation in spec.get("steadyState").items():
        _report_keys(expectation, _TEMPORAL_KEYS, "the steady state is judged at one moment, before the first step")
        _report_keys(expectation, ("known",), _KNOWN)
    for expectation in spec.get("abort").items():
        _check_abort(expectation)
    hypotheses = list(spec.get("hypothesis").items())
    report_duplicates((hypothesis.get("name") for hypothesis in hypotheses), "hypothesis")
    for hypothesis in hypotheses:
        _check_deadline(hypothesis)
        if hypothesis.get("baseline") and not spec.get("workload"):
            hint = "add spec.workload, or remove baseline"
            hypothesis.get("baseline").report("the experiment has no workload whose pods start", hint)
        _check_order(hypothesis, names.hypotheses)


def _check_assertion(expectation: Cursor, names: DeclaredNames, registry: PluginRegistry) -> None:
    assertion = find_plugin(expectation, "assert", "assertion", registry.assertions)
    if assertion:
        _check_references(expectation.get("with"), assertion, names)


def _check_references(given: Cursor, assertion: Assertion, names: DeclaredNames) -> None:
    """Nodes are referred to by target, so that an experiment runs on any cluster."""
    for field in assertion.node_fields:
        node = given.get(parameter_key(assertion, field))
        if node.text and names.targets and node.text not in (*names.targets, _ALL):
            known = [*names.targets, _ALL]
            hint = did_you_mean(node.text, known)
            node.report(f"unknown target {node.text!r}", hint)
    for key, measured in names.measurements.items():
        name = given.get(key)
        if key in assertion.params.model_fields and name.text and name.text not in measured:
            name.report(f"unknown {key} {name.text!r}", did_you_mean(name.text, measured))
    for field in assertion.moment_fields:
        _check_moment(given.get(parameter_key(assertion, field)), names.steps)


def parameter_key(assertion: Assertion, field: str) -> str:
    """YAML key of a field of the assertion's params."""
    info = assertion.params.model_fields.get(field)
    return (info.alias if info else None) or field


def _check_moments(expectation: Cursor, steps: list[str]) -> None:
    for path in (("after",), ("never", "until"), ("always", "until")):
        _check_moment(expectation.get(*path), steps)


def _check_moment(cursor: Cursor, steps: list[str]) -> None:
    if cursor.text is None:
        return
    try:
        moment = parse_moment(cursor.text)
    except ValueError as error:
        cursor.report(str(error))
        return
    if moment.step and steps and moment.step not in steps:
        cursor.report(f"unknown step {moment.step!r}", did_you_mean(moment.step, steps))


def _check_bounds(expectation: Cursor, registry: PluginRegistry) -> None:
    """Bounds with facts of a pod need an assertion that judges each pod."""
    name = expectation.get("assert").text
    if name in _PER_POD or hasattr(registry.assertions.get(name or ""), "expands_to"):
        return
    for path in (("within",), ("for",), ("never", "for"), ("always", "for")):
        cursor = expectation.get(*path)
        try:
            per_pod = cursor.text is not None and parse_bound(cursor.text).per_pod
        except ValueError:
            continue  # the model reports it
        if per_pod:
            message = f"{cursor.text!r} differs from pod to pod, but {name or 'order'} does not judge each pod"
            cursor.report(message, f"use it with {' or '.join(_PER_POD)}")


def _check_deadline(hypothesis: Cursor) -> None:
    if hypothesis.get("always").value is True:
        hypothesis.get("always").report("always: true has no end", "write always: {for: 1m} or {until: STEP}")
    elif hypothesis.get("assert") and not any(hypothesis.get(key) for key in ("within", "never", "always")):
        hint = "add within: 30s, or never or always with until or for"
        hypothesis.report("the hypothesis has no deadline", hint)


def _check_shares(expectation: Cursor) -> None:
    """A share of a time, or a percentile over it, is judged only if the whole time is."""
    given = expectation.get("with")
    keys = [key for key in ENDPOINT_SHARES if given.get(key)]
    if not keys:
        return
    bound, over = expectation.get("always", "for"), given.get("over").text
    if not bound:
        hint = f"add always: {{for: {over or '5m'}}}"
        expectation.report(f"{keys[0]} needs always with for: it is judged over the whole time", hint)
        return
    try:
        judged, needed = (parse_bound(text or "").seconds(lambda _: None) for text in (bound.text, over))
    except ValueError:
        return  # the models report it
    if judged is not None and needed is not None and judged < needed:
        bound.report(f"{bound.text} is shorter than over: {over}", "judge at least as long as over")


def _check_order(hypothesis: Cursor, known: list[str]) -> None:
    own_name = hypothesis.get("name").text
    for item in hypothesis.get("order").items():
        if item.text and item.text not in known:
            item.report(f"unknown hypothesis {item.text!r}", did_you_mean(item.text, known))
        elif item.text and item.text == own_name:
            item.report("order refers to itself")


def _check_abort(expectation: Cursor) -> None:
    keys = [key for key in _TEMPORAL_KEYS if key != "always"]
    _report_keys(expectation, keys, "an abort condition is judged continuously")
    _report_keys(expectation, ("known",), _KNOWN)
    always = expectation.get("always")
    if always and always.value is not True:
        always.report("an abort condition is judged continuously", "write always: true, or nothing")


def _report_keys(expectation: Cursor, keys: Iterable[str], why: str) -> None:
    for key in keys:
        cursor = expectation.get(key)
        if cursor:
            cursor.report_key(f"{key!r} is not allowed here: {why}", "remove it")

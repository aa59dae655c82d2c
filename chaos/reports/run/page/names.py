"""Names without the run's own namespace: short ones of pods, and those in the page's sentences."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from chaos.core.result import RunResult, StepResult
from chaos.core.verdict import Verdict
from chaos.reports.run.page.lanes import Lane


def own_namespace(meta: Mapping[str, Any], lanes: Sequence[Lane]) -> str:
    """Namespace to leave out: that of the run's workload; else that of most pods that changed; "" without any."""
    named = meta.get("workload")
    if isinstance(named, str) and named:
        return named
    changed = Counter(lane.namespace for lane in lanes if lane.kind == "pod" and lane.has_changes)
    return changed.most_common(1)[0][0] if changed else ""


def short_names(lanes: Sequence[Lane], namespace: str) -> list[str]:
    """A short name for each lane, distinct among pods.

    ``demo/web-6749b54fc9-x8z2k`` is ``web-x8z2k`` if ``namespace`` is demo. Pods whose short names are equal have
    their full names, and pods whose full names are equal a number: ``db-0 #2`` is the second db-0.
    """
    shortened = [_shortened(lane, namespace) for lane in lanes]
    full_names = defaultdict(set)
    for lane, short in zip(lanes, shortened, strict=True):
        full_names[short].add(lane.name)
    names = [short if len(full_names[short]) == 1 else lane.name for lane, short in zip(lanes, shortened, strict=True)]
    return _numbered(lanes, names)


def _shortened(lane: Lane, namespace: str) -> str:
    if lane.kind != "pod":
        return lane.name
    name = lane.name.removeprefix(f"{namespace}/") if namespace else lane.name
    before, hash_, after = name.rpartition(f"-{lane.template_hash}-")
    return f"{before}-{after}" if lane.template_hash and hash_ else name


def _numbered(lanes: Sequence[Lane], names: list[str]) -> list[str]:
    """Number the pods of one name in the order of their first observation."""
    same = defaultdict(list)
    for index, (lane, name) in enumerate(zip(lanes, names, strict=True)):
        if lane.kind == "pod":
            same[name].append(index)
    numbered = list(names)
    for name, indexes in same.items():
        if len(indexes) > 1:
            for number, index in enumerate(sorted(indexes, key=lambda i: lanes[i].spans[0].start), 1):
                numbered[index] = f"{name} #{number}"
    return numbered


def without_namespace(result: RunResult, namespace: str) -> RunResult:
    """The result with ``db-0`` for ``NAMESPACE/db-0`` in the texts of verdicts and steps; "" leaves all as it is."""
    if not namespace:
        return result

    prefix = re.compile(rf"(?<![\w./-]){re.escape(namespace)}/")

    def short(text: str) -> str:
        return prefix.sub("", text)

    parts = {
        name: tuple(_verdict(verdict, short) for verdict in getattr(result, name))
        for name in ("steady_state", "hypothesis", "abort", "recovery")
    }
    texts = {name: short(getattr(result, name)) for name in ("headline", "sentence")}
    return msgspec.structs.replace(result, **parts, **texts, steps=tuple(_step(step, short) for step in result.steps))


def _verdict(verdict: Verdict, short: Callable[[str], str]) -> Verdict:
    return replace(
        verdict,
        because=short(verdict.because),
        expected=short(verdict.expected),
        observed=short(verdict.observed),
        sentence=short(verdict.sentence),
    )


def _step(step: StepResult, short: Callable[[str], str]) -> StepResult:
    return msgspec.structs.replace(step, because=short(step.because))

"""The run's own namespace is left out of the page's sentences, as it is of the names of lanes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import msgspec

from chaos.core.result import RunResult, StepResult
from chaos.core.verdict import Verdict


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

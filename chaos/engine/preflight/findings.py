"""Findings of all checks, by severity, and their consequences for a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Struct

from chaos.core.errors import Exit, Refused, RequirementUnmet
from chaos.engine.observations import ClusterObservations, ExperimentNeeds
from chaos.engine.preflight.check import Check, Diagnosis, Severity

CLUSTER = "cluster"
FORMER_KEYS = {"message": "says", "hint": "mend", "incompatible": "unfit"}  # of JSON, written by 0.1.0
_ORDER = list(Severity)
_DOCTOR_HINT = "run nodefall doctor for all findings, experiment by experiment"


class Finding(Struct, frozen=True):
    """A diagnosis and the experiments that it affects; ``subject`` is ``cluster`` or ``host NAME``.

    A diagnosis that affects no experiment is at most a note. ``--anyway`` does not override a finding that
    ``is_final``.
    """

    check: str
    severity: Severity
    subject: str
    message: str
    hint: str = ""
    experiments: tuple[str, ...] = ()
    is_final: bool = msgspec.field(default=False, name="final")
    is_incompatible: bool = msgspec.field(default=False, name="incompatible")  # the experiments do not suit the cluster
    unmet: bool = False  # the cluster lacks what the experiments require

    def to_dict(self) -> dict[str, Any]:
        """A JSON object with the current keys and the keys of 0.1.0."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields | {former: fields[key] for key, former in FORMER_KEYS.items()}


def run_checks(
    checks: Mapping[str, Check], observations: ClusterObservations, *, bundled: bool = False
) -> list[Finding]:
    """Findings of all checks, the most severe first. ``bundled``: the experiments are those that nodefall brings."""
    found = [
        _finding(check, _downgrade(check, diagnosis) if bundled else diagnosis, observations.experiments)
        for check in checks.values()
        for diagnosis in check.run(observations.of_systems(check.systems))
    ]
    return sorted(found, key=lambda finding: -_ORDER.index(finding.severity))


def _downgrade(check: Check, diagnosis: Diagnosis) -> Diagnosis:
    if not check.is_compatibility_check or diagnosis.severity is not Severity.REFUSAL:
        return diagnosis
    return replace(diagnosis, severity=Severity.NOTE)


def _finding(check: Check, diagnosis: Diagnosis, experiments: Sequence[ExperimentNeeds]) -> Finding:
    is_ok = diagnosis.severity is Severity.OK
    affected = () if is_ok else tuple(each.name for each in experiments if diagnosis.affects(each))
    return Finding(
        check=check.name,
        severity=diagnosis.severity if affected else min(diagnosis.severity, Severity.NOTE, key=_ORDER.index),
        subject=f"host {diagnosis.host}" if diagnosis.host else CLUSTER,
        message=diagnosis.message,
        hint=diagnosis.hint,
        experiments=affected,
        is_final=check.is_final,
        is_incompatible=check.is_compatibility_check and bool(affected),
        unmet=diagnosis.unmet,
    )


def overall_exit(findings: Iterable[Finding], experiments: Sequence[ExperimentNeeds]) -> Exit:
    """The exit code: HELD without refusals, REFUSED if all experiments are refused on all nodes, else INCONCLUSIVE."""
    refusals = [f for f in findings if f.severity is Severity.REFUSAL and f.experiments]
    if not refusals:
        return Exit.HELD
    everywhere = all(_is_refused_everywhere(experiment, refusals) for experiment in experiments)
    return Exit.REFUSED if everywhere else Exit.INCONCLUSIVE


def _is_refused_everywhere(experiment: ExperimentNeeds, refusals: Sequence[Finding]) -> bool:
    subjects = {finding.subject for finding in refusals if experiment.name in finding.experiments}
    nodes = experiment.nodes
    return CLUSTER in subjects or (bool(nodes) and all(f"host {node}" in subjects for node in nodes))


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """Refusals that affect an experiment."""
    return [finding for finding in findings if finding.severity is Severity.REFUSAL and finding.experiments]


def warnings(findings: Iterable[Finding]) -> list[Finding]:
    """Warnings that affect an experiment."""
    return [finding for finding in findings if finding.severity is Severity.WARNING and finding.experiments]


def refuse(findings: Iterable[Finding], *, anyway: bool) -> tuple[str, ...]:
    """Raises Refused for blocking findings. With ``anyway`` only final ones block. Returns the overridden ones as text.

    Raises RequirementUnmet where the cluster lacks what the experiment requires.
    """
    refusals = blocking(findings)
    standing = [finding for finding in refusals if finding.is_final or not anyway]
    if not standing:
        return tuple(describe(finding) for finding in refusals)
    first, others = standing[0], len(standing) - 1
    more = f" (and {others} more: {'; '.join(f.message for f in standing[1:4])})" if others else ""
    is_final = any(f.is_final for f in standing)
    override = "" if is_final else "--anyway overrides this; the run is then inconclusive at best"
    hint = "; ".join(filter(None, [first.hint, override, _DOCTOR_HINT if others > 3 else ""]))
    unmet = any(f.unmet for f in standing) and not is_final
    raise (RequirementUnmet if unmet else Refused)(first.message + more, hint=hint)


def describe(finding: Finding) -> str:
    """``CHECK: MESSAGE``, as ``kubelet-inhibitor: worker-1: the kubelet holds no delay lock``."""
    return f"{finding.check}: {finding.message}"

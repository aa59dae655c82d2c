"""All checks over what was gathered: findings, in the order of their severity, and what they amount to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from chaos.model.errors import Exit, Refused, RequirementUnmet
from chaos.preflight.check import Check, Diagnosis, Severity
from chaos.preflight.observations import ClusterObservations, ExperimentNeeds

CLUSTER = "cluster"
_ORDER = list(Severity)
_DOCTOR_HINT = "nodefall doctor tells it all, experiment by experiment"


class Finding(Struct, frozen=True):
    """What one check says; ``subject`` is ``cluster`` or ``host NAME``, ``experiments`` those that it touches.

    What touches none of them is only a note. ``final``: --anyway does not set it aside.
    """

    check: str
    severity: Severity
    subject: str
    message: str
    hint: str = ""
    experiments: tuple[str, ...] = ()
    is_final: bool = False
    is_incompatible: bool = False  # these experiments are not made for this cluster
    unmet: bool = False  # it is not configured as they require


def run_checks(checks: Mapping[str, Check], signs: ClusterObservations, *, bundled: bool = False) -> list[Finding]:
    """The worst first, then in the order of the checks. ``shipped``: the experiments are nobody's own choice."""
    found = [
        _finding(check, _downgrade(check, diagnosis) if bundled else diagnosis, signs.experiments)
        for check in checks.values()
        for diagnosis in check.run(signs)
    ]
    return sorted(found, key=lambda finding: -_ORDER.index(finding.severity))


def _downgrade(check: Check, diagnosis: Diagnosis) -> Diagnosis:
    if not check.is_compatibility_check or diagnosis.severity is not Severity.REFUSAL:
        return diagnosis
    return replace(diagnosis, severity=Severity.NOTE)


def _finding(check: Check, diagnosis: Diagnosis, uses: Sequence[ExperimentNeeds]) -> Finding:
    touched = () if diagnosis.severity is Severity.OK else tuple(use.name for use in uses if diagnosis.affects(use))
    subject = f"host {diagnosis.host}" if diagnosis.host else CLUSTER
    severity = diagnosis.severity if touched else min(diagnosis.severity, Severity.NOTE, key=_ORDER.index)
    said = (severity, subject, diagnosis.message, diagnosis.hint)
    return Finding(
        check.name, *said, touched, check.is_final, check.is_compatibility_check and bool(touched), diagnosis.unmet
    )


def overall_exit(findings: Iterable[Finding], uses: Sequence[ExperimentNeeds]) -> Exit:
    """HELD: no experiment is refused anywhere; REFUSED: each one is refused on all its nodes; else INCONCLUSIVE."""
    refused = [f for f in findings if f.severity is Severity.REFUSAL and f.experiments]
    if not refused:
        return Exit.HELD
    return Exit.REFUSED if all(_is_refused_everywhere(use, refused) for use in uses) else Exit.INCONCLUSIVE


def _is_refused_everywhere(use: ExperimentNeeds, refused: Sequence[Finding]) -> bool:
    subjects = {finding.subject for finding in refused if use.name in finding.experiments}
    return CLUSTER in subjects or (bool(use.nodes) and all(f"host {node}" in subjects for node in use.nodes))


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """The refusals of the one experiment that was looked at."""
    return [finding for finding in findings if finding.severity is Severity.REFUSAL and finding.experiments]


def warnings(findings: Iterable[Finding]) -> list[Finding]:
    """What may spoil what is seen of the experiments that were looked at."""
    return [finding for finding in findings if finding.severity is Severity.WARNING and finding.experiments]


def refuse(findings: Iterable[Finding], *, anyway: bool) -> tuple[str, ...]:
    """Raises Refused for what stops the experiment; with ``anyway`` only for what is final, and the rest in words.

    RequirementUnmet where what is required is not there.
    """
    found = blocking(findings)
    against = [finding for finding in found if finding.is_final or not anyway]
    if not against:
        return tuple(describe(finding) for finding in found)
    first, others = against[0], len(against) - 1
    more = f" (and {others} more: {'; '.join(f.message for f in against[1:4])})" if others else ""
    overruled = "" if any(f.is_final for f in against) else "--anyway runs it all the same, as inconclusive at best"
    hint = "; ".join(filter(None, [first.hint, overruled, _DOCTOR_HINT if others > 3 else ""]))
    unmet = any(f.unmet for f in against) and not any(f.is_final for f in against)
    raise (RequirementUnmet if unmet else Refused)(first.message + more, hint=hint)


def describe(finding: Finding) -> str:
    """``kubelet-inhibitor: worker-1 ...``."""
    return f"{finding.check}: {finding.message}"

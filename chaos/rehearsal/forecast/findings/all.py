"""All findings of a run."""

from __future__ import annotations

from chaos.rehearsal.forecast.finding import Case, Finding, FindingKind
from chaos.rehearsal.forecast.findings import budgets, evictions, no_room, replicas, stuck, volumes

_FINDERS = (replicas.find, no_room.find, budgets.find, stuck.find, volumes.find, evictions.find)
_ORDER = {kind: index for index, kind in enumerate(FindingKind)}


def findings_of(case: Case) -> tuple[Finding, ...]:
    """All findings, by kind, then by subject."""
    found = [finding for find in _FINDERS for finding in find(case)]
    return tuple(sorted(found, key=lambda finding: (_ORDER[finding.kind], finding.subject)))

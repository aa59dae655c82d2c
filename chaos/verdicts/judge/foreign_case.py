"""What the recognition of foreign faults works on, and its findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from chaos.core.result import ForeignFault
from chaos.core.timeline import Timeline, Version
from chaos.verdicts.judge.own_changes import OwnChanges

_DELIVERY_SECONDS = 1.0  # after the end of a blind window, in which a list shows what changed in it


class ForeignKind(StrEnum):
    """Kinds of foreign faults."""

    CORDON = "cordon"
    UNCORDON = "uncordon"
    TAINT = "taint"
    UNTAINT = "untaint"
    DELETION = "deletion"
    REBOOT = "reboot"
    POWER_OFF = "power-off"
    SHUTDOWN = "shutdown"
    SILENCE = "silence"
    UPGRADE = "upgrade"
    EVICTION = "eviction"
    CONTROLLER_RESTART = "controller-restart"


@dataclass(frozen=True, slots=True)
class Case:
    """One timeline, and what the run itself changed."""

    timeline: Timeline
    own: OwnChanges

    def earliest(self, source: str, before: Version[Any], after: Version[Any]) -> float:
        """From when a change that ``after`` shows, and ``before`` does not, may have had effect."""
        blind = self.timeline.blind_windows_in([source], before.t, after.t)
        hiding = [window for window in blind if window.end is None or window.end >= after.t - _DELIVERY_SECONDS]
        return min([after.t, after.earliest, *(max(window.start, before.t) for window in hiding)])


def fault(node: str, kind: ForeignKind, what: str, by: str, at: float, since: float, *evidence: int) -> ForeignFault:
    """A foreign fault. ``what``: ``was cordoned``; ``by``: as in :mod:`chaos.verdicts.judge.writers`, or ""."""
    text = f"{node} {what} by {by}" if by else f"{node} {what} (who did it is unknown)"
    return ForeignFault(node, kind, text, by or "unknown", at, since, evidence)

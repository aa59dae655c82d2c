"""What is done to a node or a zone in a rehearsal: a drain, a planned shutdown, a power cut; the gentlest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

API_VERSION, BACK, FAULT = "nodefall.dev/v1alpha1", "back", "fault"
MINUTES = {"drain": 7, "poweroff": 13, "power-cut": 13}  # until the node is back: 13 minutes also let volumes detach
_DRAIN_TIMEOUT = "5m"
_ANY = 1_000_000


class Event(StrEnum):
    """The gentlest first."""

    DRAIN = "drain"
    POWEROFF = "poweroff"
    POWER_CUT = "power-cut"

    @property
    def seconds(self) -> int:
        """How long the victim is away."""
        return 60 * MINUTES[self.value]

    @property
    def words(self) -> str:
        """``a drain``, for people."""
        return _WORDS[self]


_WORDS = {Event.DRAIN: "a drain", Event.POWEROFF: "a planned shutdown", Event.POWER_CUT: "a power cut"}


@dataclass(frozen=True, slots=True)
class Victim:
    """A node that stands for others which are alike, or all workers of a zone. ``stands_for``: itself included."""

    name: str
    nodes: tuple[str, ...]
    stands_for: tuple[str, ...] = ()
    is_zone: bool = False

    @property
    def words(self) -> str:
        """``worker-1``, ``zone a``."""
        return f"zone {self.name}" if self.is_zone else self.name


def steps(event: Event, back: str, drain: Mapping[str, bool]) -> list[dict[str, Any]]:
    """The fault and its end, ``back`` after it. ``drain``: flags of the action of that name."""
    fault: dict[str, Any] = {"name": FAULT, "action": str(event), "target": "victim"}
    if event is Event.DRAIN:
        fault["with"] = {"ignore-daemonsets": True, **drain, "timeout": _DRAIN_TIMEOUT}
    end = "uncordon" if event is Event.DRAIN else "power-on"
    return [fault, {"name": BACK, "action": end, "target": "victim", "after": f"{FAULT} + {back}"}]


def rehearsed(event: Event, nodes: Sequence[str]) -> dict[str, Any]:
    """The document of a rehearsal that measures and expects nothing, for ``nodes``."""
    spec = {
        "title": f"What {event.words} does",
        "allow": ["irreversible", "ungraceful"],
        "targets": {"victim": {"nodes": list(nodes), "count": len(nodes)}},
        "steadyState": [{"assert": "nodes-ready", "with": {"not-ready-at-most": _ANY}}],
        "method": steps(event, f"{event.seconds}s", {"force": True, "delete-emptydir-data": True}),
        "hypothesis": [
            {"assert": "nodes-ready", "with": {"not-ready-at-most": _ANY}, "after": BACK, "within": "10s"},
        ],
        "maxDuration": "30m",
    }
    return {"apiVersion": API_VERSION, "kind": "Experiment", "metadata": {"name": str(event)}, "spec": spec}

"""The port that every action implements: commands out, nothing sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct
from pydantic import BaseModel

from chaos.model.command import Command, Outcome
from chaos.model.timeline import Timeline

Memory = dict[str, Any]  # JSON; all that undo needs, also after a crash


class UndoKind(StrEnum):
    RESTORES = "restores"
    SELF_RESTORING = "self-restoring"
    IRREVERSIBLE = "irreversible"


class Check(Struct, frozen=True):
    """A host fact (or ``machine`` from the power control, ``node-ready`` from the API) has a value."""

    fact: str
    value: Any

    def __str__(self) -> str:
        return f"{self.fact} is {self.value}"


class UndoStep(Struct, frozen=True):
    """Send ``command``, unless ``unless`` already holds or comes to hold within ``patience`` seconds."""

    command: Command
    unless: Check | None = None
    patience: float = 0.0


class Undo(Struct, frozen=True):
    """Steps in order, then what proves that the node is as it was; no proof = the undo stays owed."""

    steps: tuple[UndoStep, ...] = ()
    proof: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What is known of a node before a fault: ``facts`` by fact name, ``power`` the kind of power control or ""."""

    node: str
    os: str = "linux"
    power: str = ""
    static_pods: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepRun:
    """One step on one node, as it happened; times in seconds since the epoch.

    ``action`` and ``params`` are as recorded: with ``--map`` the action is not the experiment's.
    ``until`` is when the effect was ended on purpose (a later step on the node, or undo), else the end of the timeline.
    """

    step: str
    action: str
    node: str
    params: Mapping[str, Any]
    begin: float
    returned: float | None
    until: float
    outcome: Outcome | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)  # of "proved" lines


class Shown(StrEnum):
    """What a proof says."""

    PROVEN = "proven"
    DISPROVEN = "disproven"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Finding:
    shown: Shown
    because: str
    evidence: tuple[int, ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """One way to show that a step took effect. ``weak``: it shows only that it was sent."""

    name: str
    check: Callable[[Timeline, StepRun], Finding]
    weak: bool = False


class Action(Protocol):
    """One fault or repair. ``probes`` are host facts that are read before the step and after, until it is proven."""

    name: str
    summary: str
    example: str
    params: type[BaseModel]
    undo_kind: UndoKind
    cuts_line: bool  # may take our own session away
    proofs: tuple[Proof, ...]
    probes: tuple[str, ...]

    def prepare(self, target: Target, params: Any) -> Memory:
        """What undo must know. Pure. Raises Unsupported where the action cannot be done or taken back."""

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        """The commands, in order."""

    def undo(self, memory: Memory) -> Undo:
        """How to take it back; harmless twice and without inject."""

"""The port that every action implements: commands out, nothing sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

from chaos.model.command import Command, Outcome
from chaos.model.errors import Unsupported
from chaos.model.permission import Permission
from chaos.model.timeline import Timeline

UndoState = dict[str, Any]  # JSON; all that undo needs, also after a crash


class UndoKind(StrEnum):
    RESTORES = "restores"
    SELF_RESTORING = "self-restoring"
    IRREVERSIBLE = "irreversible"


class FactCheck(Struct, frozen=True):
    """A host fact (or ``machine`` from the power control, ``node-ready`` from the API) has a value."""

    fact: str
    value: Any

    def __str__(self) -> str:
        return f"{self.fact} is {self.value}"


class UndoStep(Struct, frozen=True):
    """Send ``command`` once ``when`` holds, unless ``unless`` holds or comes to hold within ``patience`` seconds.

    It is sent ``sends`` times at most, as long as it is needed.
    """

    command: Command
    unless: FactCheck | None = None
    grace_seconds: float = 0.0
    max_attempts: int = 3
    when: tuple[FactCheck, ...] = ()


class Undo(Struct, frozen=True):
    """Steps in order, then what proves that the node is as it was; then the timer ``disarm`` is stopped."""

    steps: tuple[UndoStep, ...] = ()
    proof: tuple[FactCheck, ...] = ()
    disarm: str = ""  # unit of the SelfHeal


class FailsafeTimer(Struct, frozen=True):
    """A timer of the host's PID 1, planted before the fault: runs ``argv`` as root when ``seconds`` are over.

    The engine shortens it to what is left of maxDuration, and reads it back before the fault. ``unit`` has no suffix.
    """

    unit: str
    seconds: float
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What is known before a fault: of a node, or of the cluster (``node`` is "").

    ``facts`` by fact name, ``unknown`` why others could not be read; ``objects`` what :meth:`Action.reads` asked for,
    None for what is not there; ``power`` "" without a power control, ``power_can`` what it can (on, off, state) and
    ``restart_policy`` by which the machine comes on by itself ("" or ``no``: it does not); ``tag`` names the step
    within its run, fit for names of units; ``namespace`` is the run's workload's, "" without one; ``max_duration`` in
    seconds.
    """

    node: str
    os: str = "linux"
    power: str = ""
    static_pods: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, Any] = field(default_factory=dict)
    tag: str = ""
    namespace: str = ""
    max_duration: float = 900.0
    power_capabilities: frozenset[str] = frozenset({"on", "off", "state"})
    restart_policy: str = ""

    def require_fact(self, fact: str, why: str) -> Any:
        """A fact without which the action cannot be done. Raises Unsupported, naming the fact."""
        if fact not in self.facts:
            reason = self.unknown.get(fact, "it was not read")
            raise Unsupported(f"{self.node}: {why}, but the fact {fact} is not known: {reason}")
        return self.facts[fact]


@dataclass(frozen=True, slots=True)
class StepRun:
    """One step on one node, as it happened; times in seconds since the epoch.

    ``action`` and ``params`` are as recorded: with ``--map`` the action is not the experiment's.
    ``until`` is when the effect was ended on purpose (a later step on the node, or undo), else the end of the timeline;
    ``until_seq`` tells what was seen after that in the same instant.
    """

    step: str
    action: str
    node: str
    params: Mapping[str, Any]
    begin: float
    returned: float | None
    until: float
    until_seq: int | None = None
    outcome: Outcome | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)  # of "proved" lines
    phases: Mapping[str, Any] = field(default_factory=dict)  # evidence of the "returned" line: armed, fired, began


class ProofStatus(StrEnum):
    """What a proof says."""

    PROVEN = "proven"
    DISPROVEN = "disproven"
    UNPROVEN = "not shown"


@dataclass(frozen=True, slots=True)
class ProofResult:
    status: ProofStatus
    because: str
    evidence: tuple[int, ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """One way to show that a step took effect. ``weak``: it shows only that it was sent."""

    name: str
    check: Callable[[Timeline, StepRun], ProofResult]
    weak: bool = False


class Scope(StrEnum):
    """NODE: once for each node of its target. CLUSTER: once; the step has no target."""

    NODE = "node"
    CLUSTER = "cluster"


class Action(ABC):
    """One fault or repair. What most actions have in common is the default here."""

    name: str
    summary: str
    example: str
    params: type[BaseModel]
    undo_kind: UndoKind
    proofs: tuple[Proof, ...]
    scope: Scope = Scope.NODE
    on_host: bool = True  # acts on the machine, by its session or its power control; else only through the API
    may_disconnect: bool = False  # may take our own session away
    takes_down: bool = False  # the machine goes down: a person confirms that on a real cluster
    keeps_pods_running: bool = False  # acts on the machine, and no pod ends by it
    requires_logind: bool = False  # it does nothing without logind
    exclusive_timer_reason: str = ""  # why no other step on its node may plant a timer
    proof_facts: tuple[str, ...] = ()  # host facts that are read before the step and after it, until it is proven
    facts: tuple[str, ...] = ()  # host facts that prepare looks at, besides those that are always read
    irreversible_params: tuple[str, ...] = ()  # parameters that make it irreversible when they are true
    requires_later_step: tuple[str, str] = (
        "",
        "",
    )  # a step on the same target that it must not outlive, and the one that ends it

    def api_reads(self, node: str, params: Any, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - most read nothing
        """Paths of API objects that prepare looks at; ``namespace`` is the workload's."""
        return ()

    def permissions(self, params: Any) -> tuple[Permission, ...]:  # noqa: ARG002 - most need no more
        """What it and its undo do to the cluster, besides looking at nodes, pods and what is watched in every run."""
        return ()

    def uses_logind(self, params: Any) -> bool:  # noqa: ARG002 - most are what they are
        """Whether it does nothing without logind."""
        return self.requires_logind

    def terminates_pods(self, params: Any) -> bool:  # noqa: ARG002 - most are what they are
        """Whether pods of the node may end, whatever their budgets say."""
        return self.on_host and self.scope is Scope.NODE and not self.keeps_pods_running

    @abstractmethod
    def prepare(self, target: Target, params: Any) -> UndoState:
        """What undo must know. Pure. Raises Unsupported where the action cannot be done or taken back."""

    @abstractmethod
    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        """The commands, in order; the last one is the fault."""

    def preconditions(self, memory: UndoState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - most need nothing
        """What must hold at the moment of the fault, else it is not done and the run is aborted."""
        return ()

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer | None:  # noqa: ARG002 - most cut nothing
        """The timer to plant before the fault, named after the target's tag; its undo must disarm it."""
        return None

    @abstractmethod
    def undo(self, memory: UndoState) -> Undo:
        """How to take it back; harmless twice and without inject."""

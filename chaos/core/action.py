"""Actions: each is a record of declarations and two pure functions. An action builds commands and sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from pydantic import BaseModel

from chaos.core.api_fact import PseudoFact, fact_text
from chaos.core.api_path import fill_path
from chaos.core.command import Command, Outcome, PowerCapability
from chaos.core.errors import Unsupported
from chaos.core.permission import Permission
from chaos.core.timeline import Timeline

UndoState = dict[str, Any]  # JSON of an action's state record, as plan.json holds it


class UndoKind(StrEnum):
    RESTORES = "restores"
    SELF_RESTORING = "self-restoring"
    IRREVERSIBLE = "irreversible"


class FactCheck(Struct, frozen=True):
    """The value that a host fact must have; also ``machine`` (power control), ``node-ready`` and objects of the API.

    ``fact`` is a name, or a reference with parameters as ``unit-state?unit=cron.service``.
    """

    fact: str
    value: Any

    def __str__(self) -> str:
        return fact_text(self.fact, self.value)


NODE_READY = FactCheck(PseudoFact.NODE_READY, True)


class UndoStep(Struct, frozen=True):
    """A command that is sent when ``when`` holds, unless ``unless`` holds already or within ``grace_seconds``.

    The command is sent at most ``max_attempts`` times, and only while ``unless`` does not hold. Without ``unless``
    the command is sent until it succeeds once.
    """

    command: Command
    unless: FactCheck | None = None
    grace_seconds: float = 0.0
    max_attempts: int = 3
    when: tuple[FactCheck, ...] = ()


class Undo(Struct, frozen=True):
    """Steps in order, then the checks that prove that the node is restored; then the timer ``disarm`` is stopped.

    No proof counts in the first ``settle_seconds`` after the operation, whose effect may begin as late.
    """

    steps: tuple[UndoStep, ...] = ()
    proof: tuple[FactCheck, ...] = ()
    disarm: str = ""  # unit of the FailsafeTimer, without suffix
    settle_seconds: float = 0.0


def failsafe_unit(tag: str) -> str:
    """Name of the failsafe timer of the step with this :attr:`Target.tag`, without suffix; also for ``Undo.disarm``."""
    return f"nodefall-{tag}"


class FailsafeTimer(Struct, frozen=True, omit_defaults=True):
    """A timer of the host's PID 1, armed before the fault, that runs ``argv`` as root after ``seconds``.

    On Windows a scheduled task, which follows the clock, and which runs ``argv`` at each boot until it exits with 0.
    ``by_uptime``: a task that waits by itself instead, for faults that set the clock.

    The engine shortens ``seconds`` to the rest of maxDuration and verifies the timer on the host before the fault.
    ``unit`` is :func:`failsafe_unit` of the target's tag, without suffix.
    """

    unit: str
    seconds: float
    argv: tuple[str, ...]
    by_uptime: bool = False


class Timed(Protocol):
    """A state of an action with a failsafe timer: :attr:`Target.tag`, and the seconds until the timer fires."""

    @property
    def tag(self) -> str: ...

    @property
    def seconds(self) -> float: ...


def failsafe_timer(state: Timed, *argv: str) -> FailsafeTimer:
    """The timer of a step that runs ``argv`` if nodefall does not undo it in time."""
    return FailsafeTimer(failsafe_unit(state.tag), state.seconds, argv)


@dataclass(frozen=True, slots=True)
class Target:
    """A node before a fault, or the cluster (``node`` is ""): facts, API objects, power control, limits.

    ``facts`` are values by fact name, ``unknown`` the reasons why other facts could not be read. ``objects`` are what
    :class:`Needs` names, None for an object that does not exist. ``power`` is "" without a power control, and
    with one that cannot be used for the reason ``power_error``, with a hint in ``power_hint``;
    ``power_capabilities`` are the operations it supports (on, off, state); ``restart_policy`` is by which the machine
    starts again without a command ("" or ``no``: it does not). ``run`` is the run's ID, ``tag`` identifies the step
    within its run (``RUN-STEP``) and is valid in unit names. ``namespace`` is the one of the run's workload, ""
    without a workload. ``max_duration`` in seconds. ``crash_tool``: path of the program that crashes a Windows host.
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
    power_capabilities: frozenset[PowerCapability] = frozenset(PowerCapability)
    restart_policy: str = ""
    run: str = ""
    crash_tool: str = ""
    power_error: str = ""
    power_hint: str = ""

    def require_fact(self, fact: str, why: str) -> Any:
        """Value of a fact that the action depends on. Raises Unsupported with the fact's name and ``why``."""
        if fact not in self.facts:
            reason = self.unknown.get(fact, "it was not read").removeprefix(f"{fact} of {self.node}: ")
            raise Unsupported(f"{self.node}: {why}, but the fact {fact} is not known: {reason}")
        return self.facts[fact]


@dataclass(frozen=True, slots=True)
class StepRun:
    """One step on one node as recorded; times in seconds since the epoch.

    ``action`` and ``params`` are the recorded ones: with ``--map`` the action is not the experiment's. ``until`` is
    when a later step on the node, or undo, ended the effect on purpose, else the end of the timeline; entries of that
    instant with a sequence number of ``until_seq`` or higher come after it.
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
    evidence: Mapping[str, Any] = field(default_factory=dict)  # of "proved" entries
    phases: Mapping[str, Any] = field(default_factory=dict)  # evidence of the "returned" entry: armed, fired, began...


class ProofStatus(StrEnum):
    """Result of a proof: the effect is shown, shown to be absent, or neither."""

    PROVEN = "proven"
    DISPROVEN = "disproven"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class ProofResult:
    """Status, reason and the sequence numbers of the timeline entries that show it."""

    status: ProofStatus
    because: str
    evidence: tuple[int, ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """One way to show that a step took effect. ``weak``: it shows only that the command was sent."""

    name: str
    check: Callable[[Timeline, StepRun], ProofResult]
    weak: bool = False


class Scope(StrEnum):
    """NODE: once per node of the step's target. CLUSTER: once; the step has no target."""

    NODE = "node"
    CLUSTER = "cluster"


P = TypeVar("P", bound=BaseModel)
S = TypeVar("S", bound=Struct)
NODE_NAME, NAMESPACE = "{node}", "{namespace}"  # in Needs.objects: the step's node, the workload's namespace


@dataclass(frozen=True, slots=True)
class Needs:
    """The readings and resources that an action needs with given parameters. Facts are references."""

    facts: tuple[str, ...] = ()  # of hosts that prepare reads, besides those that are always read
    proof_facts: tuple[str, ...] = ()  # of hosts that prove the step, read on all targets during the run
    objects: tuple[str, ...] = ()  # paths in the API that prepare reads, with NODE_NAME and NAMESPACE
    permissions: tuple[Permission, ...] = ()  # of the action and its undo, besides those of every run
    logind: bool = False  # it has no effect without logind
    ends_pods: bool = False  # terminates pods regardless of their budgets, though it does not act on the machine

    def paths(self, node: str, namespace: str) -> tuple[str, ...]:
        """Paths of the objects for a step on ``node``; ``namespace`` is the workload's."""
        return tuple(fill_path(path, {NODE_NAME: node, NAMESPACE: namespace}) for path in self.objects)


@dataclass(frozen=True, slots=True)
class Program:
    """Everything that a step sends to its target, and what takes it back: made of the state alone.

    ``undo`` is harmless when run twice, and without the fault. ``preconditions`` must hold at the moment of the fault,
    otherwise the run is aborted without it: all that prepare relied on, as a saved plan may be old, and no undo may
    restore a stale value. One of ``awaits`` must hold before the step begins. ``failsafe`` is armed before the fault.
    """

    commands: tuple[Command, ...]  # in order; the last one is the fault
    undo: Undo = field(default_factory=Undo)
    preconditions: tuple[FactCheck, ...] = ()
    awaits: tuple[FactCheck, ...] = ()
    failsafe: FailsafeTimer | None = None

    def __post_init__(self) -> None:
        if self.failsafe:
            object.__setattr__(self, "undo", msgspec.structs.replace(self.undo, disarm=self.failsafe.unit))


@dataclass(frozen=True, kw_only=True)
class Action(Generic[P, S]):
    """One fault or repair, with parameters ``P`` and the state ``S`` that undo needs.

    ``prepare`` makes the state from what is known before the fault, and raises Unsupported where the action is
    impossible or cannot be undone. ``program`` makes all commands from the state. Both are pure. ``S`` is a frozen
    record of JSON types: it is written down before the fault, and undo after a crash has only that.
    """

    name: str
    summary: str
    description: str = ""  # for its page
    example: str  # a step in YAML
    params: type[P]
    state: type[S]
    undo_kind: UndoKind
    proofs: tuple[Proof, ...]  # strongest first
    prepare: Callable[[Target, P], S]
    program: Callable[[S], Program]
    needs: Needs | Callable[[P], Needs] = Needs()
    scope: Scope = Scope.NODE
    systems: frozenset[str] = frozenset({"linux"})  # of hosts that it has commands for, if it acts on the machine
    no_windows_reason: str = ""  # why it cannot have a form for Windows; "" where it has one, or may get one
    on_host: bool = True  # acts on the machine, by its session or its power control; otherwise only through the API
    through_api: bool = False  # its effect is that of a request to the API, though it needs the machine
    may_disconnect: bool = False  # may break nodefall's own connection to the host; for the docs only
    stops_exec: bool = False  # until its undo the node's kubelet runs nothing in pods, so transport pod cannot undo it
    takes_down: bool = False  # the machine goes down: on a real cluster a person confirms that
    powers_on: bool = False  # a machine that is off boots
    may_crash: bool = False  # some machines do not survive it: a kernel panic, a watchdog
    keeps_pods_running: bool = False  # acts on the machine without terminating pods
    exclusive_timer_reason: str = ""  # why no other step on the node may arm a failsafe timer
    irreversible_params: tuple[str, ...] = ()  # parameters that make the action irreversible when they are true
    undo_param: str = ""  # the parameter without which the action is irreversible
    allowance: str = ""  # what spec.allow must name besides: ``custom``
    requires_later_step: tuple[str, str] = ("", "")  # an action after which the effect must be ended, and what ends it
    # Gets action and parameters of each step on the node that begins some seconds before. Raises Unsupported.
    check_order: Callable[[str, Mapping[str, Any], float], None] | None = None

    def needs_with(self, params: P) -> Needs:
        """The readings and resources that the action needs with these parameters."""
        return self.needs if isinstance(self.needs, Needs) else self.needs(params)

    def terminates_pods(self, params: P) -> bool:
        """Whether pods of the node may be terminated regardless of their budgets."""
        ends_them = self.on_host and self.scope is Scope.NODE and not self.keeps_pods_running
        return ends_them or self.needs_with(params).ends_pods

    def encode_state(self, state: S) -> UndoState:
        """The state as JSON types."""
        return dict(msgspec.to_builtins(state))

    def decode_state(self, encoded: UndoState) -> S:
        """The state from JSON types. Raises msgspec.ValidationError."""
        return msgspec.convert(encoded, self.state)


AnyAction = Action[Any, Any]

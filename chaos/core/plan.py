"""The Plan: the selected targets, and the exact commands for each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from chaos.core.action import FactCheck, FailsafeTimer, Undo, UndoState
from chaos.core.command import Command
from chaos.core.field_types import Moment
from chaos.core.text import on_node

RUN_ID = "[a-z0-9][a-z0-9-]{0,99}"  # a pattern


class PlannedStep(Struct, frozen=True):
    """One step on one node, or on the cluster (``node`` is "")."""

    step: str
    action: str
    node: str
    params: dict[str, Any]
    undo_state: UndoState
    commands: tuple[Command, ...]
    undo: Undo
    proofs: tuple[str, ...]
    preconditions: tuple[FactCheck, ...] = ()
    failsafe_timer: FailsafeTimer | None = None
    awaits: tuple[FactCheck, ...] = ()  # one of which must hold before the step begins

    @property
    def label(self) -> str:
        """``power-off on worker-2``; the name alone for a step on the cluster."""
        return on_node(self.step, self.node)


class PlannedTarget(Struct, frozen=True):
    """A node of a target, with the identity that it must still have when the run starts."""

    target: str
    node: str
    uid: str
    boot_identity: str  # boot ID and start of PID 1


class _Target(Protocol):
    @property
    def target(self) -> str: ...

    @property
    def node(self) -> str: ...


def nodes_by_target(targets: Iterable[_Target]) -> dict[str, tuple[str, ...]]:
    """The names of the nodes by target, both in their order."""
    nodes: dict[str, tuple[str, ...]] = {}
    for each in targets:
        nodes[each.target] = (*nodes.get(each.target, ()), each.node)
    return nodes


class Plan(Struct, frozen=True):
    """Plan of one run; valid for 15 minutes, one cluster, one experiment file and the listed nodes."""

    run: str
    experiment: str
    experiment_hash: str
    cluster_uid: str
    created: Moment
    seed: int
    targets: tuple[PlannedTarget, ...]
    steps: tuple[PlannedStep, ...]
    namespace: str = ""  # of the workload
    workload_nodes: tuple[str, ...] = ()  # to which its pods are confined; empty for all
    facts: dict[str, Any] = {}
    source: str = ""  # path of the experiment's file
    slack: float = 1.0  # of the inventory, for deadlines with timing: loose
    overridden: tuple[str, ...] = ()  # failed preflight checks that --anyway overrides
    warnings: tuple[str, ...] = ()  # of preflight

    @property
    def hash(self) -> str:
        """SHA-256 of the plan as JSON."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

"""Parts shared by actions that load nodefall's packet filter table without cutting nodefall off."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct
from pydantic import BaseModel

from chaos.actions._packetfilter import TABLE
from chaos.actions._peers import NODES
from chaos.model.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_unit,
)
from chaos.model.api_fact import PseudoFact
from chaos.model.command import Command, HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import readings_after
from chaos.model.state_types import LookupName, Tag
from chaos.model.timeline import Timeline

_DELETE_TABLE_ARGV = ("nft", "delete", "table", *TABLE.split())


class TableState(Struct, frozen=True):
    """The rules to load, the timer, and the connection that they leave out; ``name``: that is looked up, or ""."""

    rules: str
    tag: Tag
    seconds: float
    peer: dict[str, str | int]
    name: LookupName = ""


P = TypeVar("P", bound=BaseModel)


class TableAction(Action[P, TableState]):
    """Loads one nft table, ``inet nodefall``, and changes no other."""

    state = TableState
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    facts: tuple[str, ...] = ("nft", "ssh-peer", "nft-rules")

    def api_reads(self, node: str, params: P, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - all nodes
        return (NODES,)

    def restored(self, state: TableState) -> tuple[FactCheck, ...]:  # noqa: ARG002 - most have no more
        """What else proves the undo."""
        return ()

    def preconditions(self, state: TableState) -> tuple[FactCheck, ...]:
        """nft would add to an existing table, and one undo would delete the rules of both."""
        return (FactCheck("nft-rules", False), FactCheck("ssh-peer", state.peer))

    def inject(self, state: TableState) -> tuple[Command, ...]:
        return (HostCommand(("nft", "-f", "-"), stdin=state.rules),)

    def failsafe_timer(self, state: TableState) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, _DELETE_TABLE_ARGV)

    def undo(self, state: TableState) -> Undo:
        gone = FactCheck("nft-rules", False)
        proof = (gone, *self.restored(state), FactCheck(PseudoFact.NODE_READY, True))
        return Undo((UndoStep(HostCommand(_DELETE_TABLE_ARGV), unless=gone),), proof, disarm=failsafe_unit(state.tag))


def caught_packets(timeline: Timeline, step: StepRun) -> int:
    """The most packets that the step's rules were seen to have dropped or rejected."""
    values = [reading.value for reading in readings_after(timeline, step, "nft-rules")]
    return max((value.get("packets", 0) for value in values if isinstance(value, dict)), default=0)


def require_clean_table(target: Target) -> None:
    """Raises Unsupported without nft, or where a table of nodefall is there already."""
    target.require_fact("nft", "packets are dropped with nft")
    if target.require_fact("nft-rules", "it starts from a clean table") is not False:
        why = f"{target.node} still has packet filter rules of nodefall"
        raise Unsupported(why, hint="find the run with `nodefall undo --list` and undo it")


def timer_seconds(target: Target, duration: str | None) -> float:
    """When the host ends the fault by itself."""
    return parse_duration(duration) if duration else target.max_duration

"""Parts shared by actions that load nodefall's packet filter table without cutting nodefall off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    FactCheck,
    Program,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import readings_after
from chaos.core.node_mark import Tag
from chaos.core.timeline import Timeline
from chaos.faults.actions._packetfilter import TABLE, BlockRule, merge_networks, ruleset
from chaos.faults.actions._peer_params import OTHER_ZONES
from chaos.faults.actions._peers import control_plane, node_networks, own_networks, zone_networks

TABLE_FACTS = ("nft", "ssh-peer", "nft-rules")
_DELETE_TABLE_ARGV = ("nft", "delete", "table", *TABLE.split())


class TableState(Struct, frozen=True):
    """The rules to load, the timer, and the exempt connection, which is None in a state of 0.1.0."""

    rules: str
    tag: Tag
    seconds: float
    peer: dict[str, str | int] | None = None


def load_table(state: TableState, *restored: FactCheck) -> Program:
    """Load one nft table, ``inet nodefall``, and change no other. ``restored``: what else proves the undo.

    nft would add to an existing table, and one undo would delete the rules of both. A saved plan may be run from
    elsewhere, and its rules could then cut nodefall off.
    """
    gone = FactCheck("nft-rules", False)
    peer = () if state.peer is None else (FactCheck("ssh-peer", state.peer),)
    delete = UndoStep(HostCommand(_DELETE_TABLE_ARGV), unless=gone)
    return Program(
        (HostCommand(("nft", "-f", "-"), stdin=state.rules),),
        Undo((delete,), (gone, *restored, NODE_READY)),
        preconditions=(gone, *peer),
        failsafe=failsafe_timer(state, *_DELETE_TABLE_ARGV),
    )


def check_loaded(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Disproves a step whose table was missing afterwards; None if no reading shows that."""
    for reading in readings_after(timeline, step, "nft-rules"):
        if reading.value is False and reading.began >= (step.returned or step.begin):
            because = f"{step.node} had no rules of nodefall {reading.t - step.begin:.1f} s after the step"
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
    return None


def caught_packets(timeline: Timeline, step: StepRun) -> int:
    """The most packets that the step's rules were seen to have dropped or rejected."""
    values = [reading.value for reading in readings_after(timeline, step, "nft-rules")]
    return max((value.get("packets", 0) for value in values if isinstance(value, dict)), default=0)


def require_clean_table(target: Target) -> None:
    """Raises Unsupported without nft, or if the host already has a table of nodefall."""
    target.require_fact("nft", "packets are dropped with nft")
    if target.require_fact("nft-rules", "it starts from a clean table") is not False:
        why = f"{target.node} still has packet filter rules of nodefall"
        raise Unsupported(why, hint="find the run with `nodefall undo --list` and undo it")


def block_rules(target: Target, rule: BlockRule, from_: str, cidrs: Sequence[str]) -> str:
    """The nft rules that drop the packets of ``rule`` for the peers ``from_``, except for nodefall's own connection.

    Raises Unsupported, also for an invalid address in the cluster's objects.
    """
    peer = target.require_fact("ssh-peer", "the connection to the node must be exempt")
    try:
        return ruleset(
            replace(
                rule,
                peers=_peers(target, rule, from_, cidrs),
                own_networks=merge_networks(own_networks(target)),
                exempt_connection=(peer["address"], peer["port"]) if peer else None,
            )
        )
    except ValueError as error:
        raise Unsupported(f"{target.node}: no rules can be made of the cluster's addresses: {error}") from error


def _peers(target: Target, rule: BlockRule, from_: str, cidrs: Sequence[str]) -> list[str]:
    """The networks to block; empty for everything and for ports. Raises Unsupported if none is known."""
    if from_ == "cidr":
        return merge_networks(cidrs)
    if from_ == "nodes":
        return node_networks(target)
    if from_ == OTHER_ZONES:
        return zone_networks(target, pods=rule.pods)
    return control_plane(target) if from_ == "control-plane" else []

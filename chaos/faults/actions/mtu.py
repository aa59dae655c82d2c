"""A path on which large packets vanish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from chaos.core.action import Action, Needs, Proof, ProofResult, ProofStatus, StepRun, Target, UndoKind
from chaos.core.evidence import no_proof, readings_after, within_duration
from chaos.core.fact import FactRef
from chaos.core.timeline import Timeline
from chaos.faults.actions._packetfilter import BlockRule
from chaos.faults.actions._params import RulesEnd, timer_seconds
from chaos.faults.actions._peer_params import PeerParams, hit_peer, own_zone_peer, peer_limits, pings_before
from chaos.faults.actions._peers import BLACK_HOLES, NODES
from chaos.faults.actions._table import (
    TABLE_FACTS,
    TableState,
    block_rules,
    caught_packets,
    check_loaded,
    load_table,
    require_clean_table,
)

_SMALLEST, _LARGEST = 576, 9000


class Params(PeerParams):
    """The packets that are dropped."""

    size: int = Field(
        1280, ge=_SMALLEST, le=_LARGEST, description="The size of the largest packet that passes, in bytes."
    )
    traffic: Literal["host", "pods", "all"] = Field("all", description="Whose packets are dropped.")
    duration: RulesEnd = None


def _pings(size: int, recorded: Mapping[str, Any]) -> str:
    return str(FactRef("mtu-pings", {"size": str(size), **peer_limits(recorded)}))


def _check_large_vanish(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven when pings of ``size`` bytes are answered, and larger pings no longer are.

    The rules must also have caught packets, because something else may have reduced the path's MTU.
    """
    step = within_duration(step)
    begin, size = step.returned or step.begin, int(step.params.get("size", 1280))
    if unloaded := check_loaded(timeline, step):
        return unloaded
    fact = _pings(size, step.params)
    peer, own_zone = hit_peer(timeline, step, fact), own_zone_peer(timeline, step, fact)
    usual, near_usual = (pings_before(timeline, step, fact, each)[-1:] for each in (peer, own_zone))
    for reading in (r for r in readings_after(timeline, step, fact) if r.began >= begin):
        found, near = peer.pings(reading), own_zone.pings(reading)
        if found.get("large"):
            because = f"a ping of {size + 1} bytes of {step.node} was answered"
            return ProofResult(ProofStatus.DISPROVEN, because, (reading.seq,))
        if near.get("small") and not near["large"] and _large_passed(near_usual):
            return no_proof(f"pings of {size + 1} bytes of {step.node} to its own zone were not answered")
        if found.get("small") and _large_passed(usual) and caught_packets(timeline, step):
            because = f"pings of {size} bytes of {step.node} were answered, those of {size + 1} bytes no longer"
            return ProofResult(ProofStatus.PROVEN, because, (reading.seq,))
    return no_proof(f"pings of {step.node} do not show that packets of {size + 1} bytes passed before and not after")


def _large_passed(pings: Iterable[dict[str, Any]]) -> bool:
    return any(found.get("large") for found in pings)


def _needs(params: Params) -> Needs:
    return Needs(
        (*TABLE_FACTS, "server-addresses", "api-peers", BLACK_HOLES),
        ("nft-rules", _pings(params.size, params.model_dump(by_alias=True))),
        objects=(NODES,),
    )


def _prepare(target: Target, params: Params) -> TableState:
    require_clean_table(target)
    traffic = params.traffic
    rule = BlockRule(host=traffic in ("host", "all"), pods=traffic in ("pods", "all"), longer_than=params.size)
    return TableState(
        rules=block_rules(target, rule, params.from_, params.cidrs),
        tag=target.tag,
        seconds=timer_seconds(target, params.duration),
        peer=target.require_fact("ssh-peer", "the connection to the node must be exempt"),
    )


ACTION = Action(
    name="mtu",
    summary=(
        "drop a node's large packets to and from the control plane, other nodes, zones or networks,"
        " without an ICMP message"
    ),
    description="""
    Drops packets of more than ``size`` bytes between the node and peers, in the nft table ``inet nodefall``, without
    a message. This is a black hole for path MTU discovery, like a tunnel with a smaller MTU whose ICMP messages are
    filtered. Small packets pass, so connections are established, but they hang as soon as one side sends more, for
    example a TLS certificate. The kernel handles several TCP packets as one (GSO, GRO), so packets are also dropped
    if the sender already uses a smaller size. nodefall's own connection is exempt. In the lab, only pings are
    dropped.
    """,
    example="{name: black-hole, action: mtu, target: victim, with: {size: 1280, duration: 100s}}",
    params=Params,
    state=TableState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("large-pings-vanish", _check_large_vanish),),
    needs=_needs,
    prepare=_prepare,
    program=load_table,
)

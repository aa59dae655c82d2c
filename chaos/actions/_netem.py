"""Parts shared by actions that delay or drop packets: a queueing discipline of nodefall's own, and what undoes it.

The root is replaced by ``prio`` with a fourth band, in which netem is; filters send the peers' packets there, and are
added last: a batch that is cut off before has no effect. Only the kernel's own default, which has handle ``0:`` and
returns when the root is deleted, is replaced. The kernel refuses to delete a root by another handle (tc-netem(8)).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from msgspec import Struct
from pydantic import Field

from chaos.actions._packetfilter import parse_network
from chaos.actions._peers import NODES, addresses_of, control_plane, other_nodes, require_peers
from chaos.facts.netem import NETEM, ROOT
from chaos.model.action import Action, FactCheck, FailsafeTimer, Target, Undo, UndoKind, UndoStep, failsafe_unit
from chaos.model.api_fact import PseudoFact
from chaos.model.command import Command, HostCommand
from chaos.model.document import DurationText, Model
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.fact import FactRef
from chaos.model.state_types import Tag

_LIMIT = 100_000  # packets that netem holds: 1000, its default, would drop at 200 ms and 5000 packets a second
_BAND = f"{ROOT}4"


class NetemParams(Model):
    """Whose packets, and for how long."""

    from_: Literal["control-plane", "nodes"] = Field(
        "control-plane", alias="from", description="packets to these peers; of the host and of its pods"
    )
    direction: Literal["out"] = Field("out", description="only what the node sends; inbound packets are not supported")
    duration: DurationText | None = Field(None, description="when the node ends it by itself; default: maxDuration")


class NetemState(Struct, frozen=True):
    """What tc is to load, the interface and its queueing disciplines before; the timer; the connection left out."""

    batch: str
    interface: str
    qdiscs: list[dict[str, Any]]
    tag: Tag
    seconds: float
    peer: dict[str, str | int]


P = TypeVar("P", bound=NetemParams)


class NetemAction(Action[P, NetemState]):
    """Delays or drops packets of the host and its pods to peers. nodefall's own connection is exempt."""

    state = NetemState
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proof_facts = ("netem", "round-trips")
    facts = ("netem-support", "netem", "qdiscs", "peer-routes", "server-addresses", "api-peers", "ssh-peer")

    @abstractmethod
    def effect(self, target: Target, params: P) -> str:
        """Netem's parameters, as in tc-netem(8). Raises Unsupported."""

    def api_reads(self, node: str, params: P, namespace: str) -> tuple[str, ...]:  # noqa: ARG002 - all nodes
        return (NODES,)

    def prepare(self, target: Target, params: P) -> NetemState:
        target.require_fact("netem-support", "packets are delayed and dropped with netem")
        if target.require_fact("netem", "it starts from clean interfaces") is not False:
            why = f"{target.node} still has a queueing discipline of nodefall"
            raise Unsupported(why, hint="find the run with `nodefall undo --list` and undo it")
        peers = _peers(target, params)
        interface = _interface(target, peers)
        peer = target.require_fact("ssh-peer", "the connection to the node must be exempt")
        return NetemState(
            batch=_batch(interface, self.effect(target, params), peers, peer),
            interface=interface,
            qdiscs=_default_qdiscs(target, interface),
            tag=target.tag,
            seconds=parse_duration(params.duration) if params.duration else target.max_duration,
            peer=peer,
        )

    def preconditions(self, state: NetemState) -> tuple[FactCheck, ...]:
        """Another root may have been set meanwhile; and a saved plan may be run from elsewhere."""
        return (_before(state), FactCheck("ssh-peer", state.peer))

    def inject(self, state: NetemState) -> tuple[Command, ...]:
        return (HostCommand(("tc", "-batch", "-"), stdin=state.batch),)

    def failsafe_timer(self, state: NetemState) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, _delete(state))

    def undo(self, state: NetemState) -> Undo:
        gone = FactCheck("netem", False)
        proof = (gone, _before(state), FactCheck(PseudoFact.NODE_READY, True))
        return Undo((UndoStep(HostCommand(_delete(state)), unless=gone),), proof, disarm=failsafe_unit(state.tag))


def _before(state: NetemState) -> FactCheck:
    return FactCheck(str(FactRef("qdiscs", {"interface": state.interface})), {state.interface: state.qdiscs})


def _delete(state: NetemState) -> tuple[str, ...]:
    return ("tc", "qdisc", "del", "dev", state.interface, "root", "handle", ROOT)


def _peers(target: Target, params: NetemParams) -> list[str]:
    """Addresses, the node's own excluded. Raises Unsupported where none is known, or one is invalid."""
    try:
        if params.from_ == "control-plane":
            found = control_plane(target)
        else:
            found = require_peers(target, addresses_of(other_nodes(target)), "another node")
        return [str(address) for network in found for address in parse_network(network)]
    except ValueError as error:
        raise Unsupported(f"{target.node}: no filters can be made of the cluster's addresses: {error}") from error


def _interface(target: Target, peers: Sequence[str]) -> str:
    """The interface through which the peers are reached. Raises Unsupported where it is not one."""
    routes = target.require_fact("peer-routes", "the interface to the peers must be known")
    found = sorted({routes[peer] for peer in peers if peer in routes})
    if len(found) != 1:
        which = f"interfaces {', '.join(found)}" if found else "no interface"
        raise Unsupported(f"{target.node} reaches these peers through {which}; one is needed")
    return str(found[0])


def _default_qdiscs(target: Target, interface: str) -> list[dict[str, Any]]:
    """Those of the interface. Raises Unsupported if the kernel would not restore them by itself."""
    found: list[dict[str, Any]] = target.require_fact("qdiscs", "they must be restored exactly").get(interface) or []
    foreign = sorted({f"{row['kind']} {row['handle']}" for row in found if row["handle"] != "0:"})
    if foreign or not found:
        why = f"{interface} of {target.node} has {', '.join(foreign) or 'no queueing discipline that tc lists'}"
        raise Unsupported(f"{why}: only the kernel's default can be restored exactly", hint="choose another node")
    return found


def _batch(interface: str, effect: str, peers: Sequence[str], exempt: dict[str, str | int]) -> str:
    """The commands for tc. A preference belongs to one protocol."""
    lines = [
        f"qdisc add dev {interface} root handle {ROOT} prio bands 4",
        f"qdisc add dev {interface} parent {_BAND} handle {NETEM} netem limit {_LIMIT} {effect}",
    ]
    head = f"filter add dev {interface} parent {ROOT} protocol"
    if exempt:
        protocol, length = _protocol(str(exempt["address"]))
        match = f"flower ip_proto tcp dst_ip {exempt['address']}/{length} src_port {exempt['port']}"
        lines.append(f"{head} {protocol} pref 1 {match} classid {ROOT}1")
    for peer in peers:
        protocol, length = _protocol(peer)
        pref = 2 if protocol == "ip" else 3
        lines.append(f"{head} {protocol} pref {pref} flower dst_ip {peer}/{length} classid {_BAND}")
    return "".join(f"{line}\n" for line in lines)


def _protocol(address: str) -> tuple[str, int]:
    """Protocol and length of the mask. Raises ValueError."""
    return ("ip", 32) if parse_network(address).version == 4 else ("ipv6", 128)

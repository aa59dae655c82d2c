"""Parts shared by actions that delay, drop or change packets: nodefall's own queueing discipline, and its undo.

Only the kernel's own default root, which has handle ``0:`` and returns when the root is deleted, is replaced. The
kernel refuses to delete a root by another handle (tc-netem(8)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.fact import FactRef
from chaos.core.node_mark import InterfaceName, Tag, TrafficFilterKey
from chaos.faults.actions._netem_batch import Shape, batch, delete_argv, first_filter, load_command, renew_argv
from chaos.faults.actions._packetfilter import addresses_within, merge_networks, parse_network
from chaos.faults.actions._params import timer_seconds
from chaos.faults.actions._peer_params import OTHER_ZONES, NetemParams, directions, measuring_fact, routes_fact
from chaos.faults.actions._peers import (
    BLACK_HOLES,
    NODES,
    addresses_of,
    control_plane,
    other_nodes,
    require_peers,
    zone_addresses,
    zone_pod_networks,
)
from chaos.faults.readings.interfaces import DEFAULT

# Packets that netem holds: 1000, its default, would drop at 200 ms and 5000 packets a second.
NETEM = "netem limit 100000"
_INGRESS = ("ingress", "clsact")
_KIND = str(FactRef("sysctl", {"key": "net.core.default_qdisc"}))  # of a root that the kernel makes by itself
_NO_QUEUE, _PER_QUEUE = "noqueue", "mq"  # roots that do not follow it; those of the queues below mq do
_FACTS = ("netem-support", "netem", "qdiscs", "shared-kernel", "link-kinds", "server-addresses", "api-peers")
_CONTAINER_KINDS = ("veth", "macvlan", "ipvlan")  # of an interface that is a container's own


class NetemState(Struct, frozen=True):
    """The batch for tc, the interface and its previous queueing disciplines, the timer, and the exempt connection.

    ``first``: how the first filter for inbound packets is found, "" if there is none. ``kind``: the kernel's default,
    "" if nothing that is replaced follows it.
    """

    batch: str
    interface: InterfaceName
    qdiscs: list[dict[str, Any]]
    tag: Tag
    seconds: float
    peer: dict[str, str | int]
    direction: Literal["out", "in", "both"] = "out"
    first: TrafficFilterKey = ""
    kind: str = ""


P = TypeVar("P", bound=NetemParams)


@dataclass(frozen=True)
class PacketEffect(Generic[P]):
    """The effect on packets, and its proof.

    ``qdisc`` makes the queueing discipline, as in tc(8), of the target, the parameters and the interface; it raises
    Unsupported. ``feature``: of the fact netem-support; ``measured_by``: name of the fact that proves the step;
    ``facts``: what ``qdisc`` reads besides.
    """

    params: type[P]
    qdisc: Callable[[Target, P, str], str]
    proof: Proof
    feature: str = "netem"
    measured_by: str = "round-trips"
    facts: tuple[str, ...] = ()

    def needs(self, params: P) -> Needs:
        """The facts and objects that the action reads."""
        recorded = _recorded(params)
        blocks = (BLACK_HOLES,) if params.from_ == OTHER_ZONES else ()
        return Needs(
            (*_FACTS, *self.facts, routes_fact(recorded), _KIND, "ssh-peer", *blocks),
            ("netem", measuring_fact(self.measured_by, recorded)),
            objects=(NODES,),
        )

    def prepare(self, target: Target, params: P) -> NetemState:
        """Capture the state of the step. Raises Unsupported."""
        ways = directions(_recorded(params))
        _require_features(target, self.feature, *(["ingress"] if "in" in ways else []))
        if target.require_fact("netem", "it starts from clean interfaces") is not False:
            why = f"{target.node} still has a queueing discipline of nodefall"
            raise Unsupported(why, hint="find the run with `nodefall undo --list` and undo it")
        peers = _peers(target, params)
        interface = _interface(target, peers, routes_fact(_recorded(params)))
        peer = target.require_fact("ssh-peer", "the connection to the node must be exempt")
        found = _default_qdiscs(target, interface, is_inbound="in" in ways)
        shape = Shape(interface, self.qdisc(target, params, interface), peers, peer)
        return NetemState(
            batch=batch(shape, ways),
            interface=interface,
            qdiscs=found,
            tag=target.tag,
            seconds=timer_seconds(target, params.duration),
            peer=peer,
            direction=params.direction,
            first=first_filter(shape) if "in" in ways else "",
            kind=_default_kind(target, interface, found) if "out" in ways else "",
        )


def packet_action(
    effect: PacketEffect[P], *, name: str, summary: str, description: str, example: str
) -> Action[P, NetemState]:
    """Make an action on packets of the host and its pods, except for nodefall's own connection."""
    return Action(
        name=name,
        summary=summary,
        description=description,
        example=example,
        params=effect.params,
        state=NetemState,
        undo_kind=UndoKind.RESTORES,
        keeps_pods_running=True,
        proofs=(effect.proof,),
        needs=effect.needs,
        prepare=effect.prepare,
        program=_program,
    )


def _program(state: NetemState) -> Program:
    """The commands and undo. If the kernel's default changed meanwhile, undo recreates the root once it is restored.

    Another root may have been set meanwhile; and a saved plan may be run from elsewhere. The device for inbound packets
    may be another step's, and the undo of this one would delete it.
    """
    ways = directions({"direction": state.direction})
    gone = FactCheck("netem", False)
    before = FactCheck(str(FactRef("qdiscs", {"interface": state.interface})), {state.interface: state.qdiscs})
    kinds = (FactCheck(_KIND, state.kind),) if state.kind else ()
    delete = delete_argv(state.interface, state.first, ways)
    renew = HostCommand(renew_argv(state.interface))
    steps = (
        UndoStep(HostCommand(delete), unless=gone),
        *(UndoStep(renew, unless=before, when=(gone, kind)) for kind in kinds),
    )
    return Program(
        (load_command(state.batch, ways),),
        Undo(steps, (gone, before, NODE_READY)),
        preconditions=(gone, before, *kinds, FactCheck("ssh-peer", state.peer)),
        failsafe=failsafe_timer(state, *delete),
    )


def _recorded(params: NetemParams) -> dict[str, Any]:
    return params.model_dump(by_alias=True)


def _require_features(target: Target, *features: str) -> None:
    """Raises Unsupported for a feature that the host's kernel or tc lacks."""
    found = target.require_fact("netem-support", "packets are delayed, dropped and changed with tc")
    if lacking := [name for name in features if name not in found]:
        raise Unsupported(f"{target.node}: kernel or tc cannot do {', '.join(lacking)}", hint="choose another node")


def _peers(target: Target, params: NetemParams) -> list[str]:
    """The peers' networks, without the node's own addresses. Raises Unsupported if none is known, or one is invalid."""
    try:
        found = [str(network) for network in _networks(target, params) if _is_wanted(network.version, params.families)]
    except ValueError as error:
        raise Unsupported(f"{target.node}: no filters can be made of the cluster's addresses: {error}") from error
    if not found:
        raise Unsupported(f"{target.node}: no peer has an address of {' or '.join(params.families or ())}")
    return found


def _networks(target: Target, params: NetemParams) -> list[IPv4Network | IPv6Network]:
    if params.from_ == "cidr":
        return [parse_network(text) for text in merge_networks(params.cidrs)]
    pods: list[str] = []
    if params.from_ == "control-plane":
        found = control_plane(target)
    elif params.from_ == OTHER_ZONES:
        found, pods = zone_addresses(target), zone_pod_networks(target)
    else:
        found = require_peers(target, addresses_of(other_nodes(target)), "another node")
    single = [parse_network(str(address)) for network in found for address in parse_network(network)]
    return [*single, *map(parse_network, pods)]


def _is_wanted(version: int, families: Sequence[str] | None) -> bool:
    return families is None or f"ipv{version}" in families


def _interface(target: Target, peers: Iterable[str], routes_reference: str) -> str:
    """The interface that leads to the peers. Raises Unsupported if it does not belong to the host itself."""
    routes = target.require_fact(routes_reference, "the interface to the peers must be known")
    found = sorted({routes[address] for address in addresses_within(routes, peers)})
    if len(found) != 1:
        which = f"interfaces {', '.join(found)}" if found else "no interface"
        raise Unsupported(f"{target.node} reaches these peers through {which}; one is needed")
    (interface,) = found
    kind = target.require_fact("link-kinds", "the interface must be the host's own").get(interface, "")
    is_container = target.require_fact("shared-kernel", "the interface must be the host's own")
    if is_container and kind not in _CONTAINER_KINDS:
        why = f"{target.node} is a container, and {interface} is not its own but that of its machine"
        raise Unsupported(why, hint="choose a node with a separate network")
    return str(interface)


def _default_qdiscs(target: Target, interface: str, *, is_inbound: bool) -> list[dict[str, Any]]:
    """The default queueing disciplines of the interface. Raises Unsupported if the kernel would not restore them.

    Those for inbound packets (also of eBPF, as Cilium's) stay as they are unless inbound packets are to be hit.
    """
    found: list[dict[str, Any]] = target.require_fact("qdiscs", "they must be restored exactly").get(interface) or []
    roots = [row for row in found if row["kind"] not in _INGRESS]
    others = found if is_inbound else roots
    foreign = sorted({f"{row['kind']} {row['handle']}" for row in others if row["handle"] != DEFAULT})
    if foreign or not roots:
        why = f"{interface} of {target.node} has {', '.join(foreign) or 'no queueing discipline that tc lists'}"
        raise Unsupported(f"{why}: only the kernel's default can be restored exactly", hint="choose another node")
    return found


def _default_kind(target: Target, interface: str, qdiscs: Iterable[Mapping[str, Any]]) -> str:
    """The kernel's default qdisc, "" if the root does not follow it. Raises Unsupported if the default has changed.

    A root is what was the default when the interface came up, and becomes what it is when nodefall's is deleted
    (attach_default_qdiscs, net/sched/sch_generic.c).
    """
    found = {str(row["kind"]) for row in qdiscs if row["kind"] not in _INGRESS} - {_NO_QUEUE, _PER_QUEUE}
    if not found:
        return ""
    default = str(target.require_fact(_KIND, "the kernel must restore the queueing discipline"))
    if found != {default}:
        which = f"{interface} of {target.node} has {', '.join(sorted(found))}"
        raise Unsupported(
            f"{which}, and the kernel would restore {default} (net.core.default_qdisc)",
            hint=f"set net.core.default_qdisc to the qdisc of {interface}, or choose another node",
        )
    return default

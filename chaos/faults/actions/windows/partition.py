"""A Windows node's own traffic cut by rules of the Windows firewall, on both address families.

The traffic of ordinary pods does not pass the host's firewall: the kubelet, containerd, kube-proxy and HostProcess pods
are cut off. Rules persist over a boot, so the failsafe task removes them at a boot too.
"""

from __future__ import annotations

import ipaddress
from typing import Literal

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    FactCheck,
    Needs,
    Program,
    Proof,
    Target,
    Undo,
    UndoStep,
    failsafe_timer,
    failsafe_unit,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.node_mark import Tag
from chaos.core.windows import powershell, system_program, windows_form
from chaos.faults.actions import partition
from chaos.faults.actions._packetfilter import parse_network
from chaos.faults.actions._params import timer_seconds
from chaos.faults.actions._partition_proof import check_partitioned
from chaos.faults.actions._peers import (
    NODES,
    addresses_of,
    capture_reachability,
    control_plane,
    known_servers,
    own_node,
    pod_networks,
)
from chaos.faults.actions.partition import Params
from chaos.faults.actions.windows._ranges import (
    EVERYTHING,
    NEVER_BLOCKED,
    AddressRange,
    Network,
    blocked_ranges,
    split_list,
)

_LIST_LIMIT = 7000  # characters of one list: cmd.exe, which SSH starts, takes lines of 8,191
_NETBIOS_LENGTH = 15  # characters of a computer's name in front of its accounts
_FIREWALL = (system_program("netsh"), "advfirewall", "firewall")
_NO_SUCH_RULE = 1  # exit code of netsh.exe for this and for other errors: the proof decides


class PartitionState(Struct, frozen=True):
    """The ranges to block; which address families of the API server were reachable; the task; the firewall's state.

    ``clients``: the addresses of nodefall that the ranges leave out, None in a state of 0.1.0.
    """

    ranges: tuple[AddressRange, ...]
    directions: tuple[Literal["in", "out"], ...]
    reachable: dict[str, bool]
    tag: Tag
    seconds: float
    firewall: dict[str, str]
    clients: tuple[str, ...] | None = None


def _check_params(target: Target, params: Params) -> None:
    """Raises Unsupported for parameters that the Windows firewall cannot express, or that nothing would prove."""
    refusals = (
        (
            params.traffic == "pods",
            "traffic: pods is not possible on Windows: the host's firewall does not see the traffic of pods",
            "leave traffic out: the node's own traffic is blocked",
        ),
        (
            params.from_ not in ("control-plane", "everything-but-us"),
            f"from: {params.from_} cannot be proven on Windows, whose firewall does not count what it blocks",
            "use from: control-plane or from: everything-but-us, which connections to the API server prove",
        ),
        (
            params.direction == "in",
            "direction: in leaves the kubelet connected: Windows judges a connection by its first packet",
            "leave direction out, or use out",
        ),
        (
            params.families is not None and len(set(params.families)) < 2,
            "one address family is not a partition: a dual-stack node uses the other one",
            "leave families out",
        ),
    )
    for applies, why, hint in refusals:
        if applies:
            raise Unsupported(f"{target.node}: {why}", hint=hint)


def _check_login(target: Target, params: Params) -> None:
    """Raises Unsupported for an account whose logins the partition would prevent, including the undo's."""
    if params.from_ != "everything-but-us":
        return
    domain = target.require_fact("login-domain", "a domain controller would be cut off too")
    name = str(target.require_fact("machine-id", "its own accounts need no domain controller"))
    if domain != name[:_NETBIOS_LENGTH].lower():
        why = f"{target.node}: an account of {domain} needs its domain controller at each login, which would be cut off"
        raise Unsupported(why, hint="use a local account, or from: control-plane")


def _require_firewall(target: Target) -> dict[str, str]:
    """The firewall's state by profile. Raises Unsupported if a rule would have no effect."""
    profiles: dict[str, str] = target.require_fact("firewall-state", "a rule has no effect where the firewall is off")
    for profile, state in sorted(profiles.items()):
        if state == "policy":
            why = f"a policy ignores local rules of the Windows firewall in profile {profile}"
            raise Unsupported(f"{target.node}: {why}", hint="exempt the node from the policy, or choose another node")
        if state != "on":
            hint = "run netsh advfirewall set allprofiles state on; AKS turns it off at each start of the kubelet"
            raise Unsupported(f"{target.node}: the Windows firewall is {state} in profile {profile}", hint=hint)
    return profiles


def _require_clients(target: Target) -> list[str]:
    """The client addresses of nodefall's connection. Raises Unsupported if they are unknown."""
    clients: list[str] = target.require_fact("connection-peers", "the connection to the node must be exempt")
    return clients


def _ranges(target: Target, params: Params) -> tuple[str, ...]:
    """The ranges to block, without the addresses that must stay reachable. Raises Unsupported."""
    clients = _require_clients(target)
    if shared := sorted(set(clients) & set(known_servers(target))):
        why = f"{target.node}: the connection to it comes from {shared[0]}, the address of the API server"
        raise Unsupported(why, hint="reach the node from another machine")
    try:
        planes = control_plane(target) if params.from_ == "control-plane" else EVERYTHING
        own = [*addresses_of(own_node(target)), *pod_networks(own_node(target))]
        exempt = _networks([*clients, *own, *NEVER_BLOCKED])
        ranges = tuple(blocked_ranges(_networks(planes), exempt))
    except ValueError as error:
        raise Unsupported(f"{target.node}: no rules can be made of the cluster's addresses: {error}") from error
    if not ranges:
        why = f"{target.node}: every address of the control plane is one that must stay reachable"
        raise Unsupported(why, hint="reach the node from another machine")
    return ranges


def _networks(texts: tuple[str, ...] | list[str]) -> list[Network]:
    """Raises ValueError."""
    found = [parse_network(text) for text in texts]
    mapped = (
        n.network_address.ipv4_mapped for n in found if isinstance(n, ipaddress.IPv6Network) and n.prefixlen == 128
    )
    return [*found, *(ipaddress.IPv4Network(address) for address in mapped if address)]


def _add_rule(tag: str, direction: str, ranges: str) -> HostCommand:
    rule = (f"name={failsafe_unit(tag)}", f"dir={direction}", "action=block", "profile=any", "protocol=any")
    return HostCommand((*_FIREWALL, "add", "rule", *rule, "enable=yes", f"remoteip={ranges}"))


def _prepare(target: Target, params: Params) -> PartitionState:
    _check_params(target, params)
    _check_login(target, params)
    firewall = _require_firewall(target)
    if target.require_fact("firewall-rules", "a partition starts without rules of others"):
        why = f"{target.node} still has rules of an earlier partition"
        raise Unsupported(why, hint="find the run with `nodefall undo --list` and undo it")
    return PartitionState(
        ranges=_ranges(target, params),
        directions=("out",) if params.direction == "out" else ("in", "out"),
        reachable=capture_reachability(target),
        tag=target.tag,
        seconds=timer_seconds(target, params.duration),
        firewall=firewall,
        clients=tuple(_require_clients(target)),
    )


def _program(state: PartitionState) -> Program:
    """Outbound rules are added last: they cut the kubelet off, as Windows judges a connection by its first packet.

    AKS turns the firewall off at each start of the kubelet, and then a rule has no effect. A saved plan may be run from
    elsewhere, and its ranges would then cut nodefall off. The registry shows that no rule is left: netsh.exe exits with
    1 for that, and while the firewall starts.
    """
    gone, rule = FactCheck("firewall-rules", []), failsafe_unit(state.tag)
    clients = () if state.clients is None else (FactCheck("connection-peers", list(state.clients)),)
    # Every rule of that name, in every profile.
    delete = HostCommand((*_FIREWALL, "delete", "rule", f"name={rule}"), accept=(0, _NO_SUCH_RULE))
    return Program(
        tuple(
            _add_rule(state.tag, direction, text)
            for direction in state.directions
            for text in split_list(state.ranges, _LIST_LIMIT)
        ),
        Undo((UndoStep(delete, unless=gone),), (gone, FactCheck("api-reachable", state.reachable), NODE_READY)),
        preconditions=(gone, FactCheck("firewall-state", state.firewall), *clients),
        failsafe=failsafe_timer(state, *powershell("failsafe-delete-rules", rule=rule)),
    )


ACTION = windows_form(
    partition.ACTION,
    summary="block the node's own traffic with the control plane, or with everything but nodefall, on both families",
    description="""
    Adds block rules named ``nodefall-TAG``, and changes no other rule, profile or policy.

    A block rule beats every allow rule, so the addresses that are connected to the host are left out of its ranges.
    """,
    state=PartitionState,
    proofs=(Proof("cut-is-felt", check_partitioned),),
    needs=Needs(
        (
            *("firewall-state", "firewall-rules", "connection-peers", "login-domain"),
            *("server-addresses", "api-peers", "api-reachable"),
        ),
        ("api-reachable", "firewall-rules"),
        objects=(NODES,),
    ),
    prepare=_prepare,
    program=_program,
)

"""Commands for tc(8) and ip(8), and their undo, by direction.

Out: the root is replaced by ``prio`` with a fourth band, in which the effect is. In: an ingress qdisc redirects the
peers' packets to a device of nodefall's own (ifb), whose root has the effect. Filters send the peers' packets there and
are added last: a batch that is cut off before has no effect.

The ingress qdisc has the same handle whoever adds it, so it is deleted only after a filter with a preference of
nodefall's own was deleted from it, and added just before that filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.faults.actions._packetfilter import parse_network
from chaos.faults.readings.interfaces import EFFECT, IFB, ROOT

_BAND = f"{ROOT}4"
_FIRST = 20047  # of the preferences of filters for inbound packets
_ADD_IFB = f"modprobe -q ifb numifbs=0; ip link add {IFB} type ifb && ip link set {IFB} up && exec tc -batch -"
_NEIGHBOUR_DISCOVERY = (135, 136)  # ICMPv6 types: without them a connection of nodefall over IPv6 breaks as well


@dataclass(frozen=True, slots=True)
class Shape:
    """``effect``: a qdisc with its parameters. ``peers``: networks. ``exempt``: nodefall's own connection, or {}."""

    interface: str
    effect: str
    peers: Sequence[str]
    exempt: Mapping[str, str | int]


def batch(shape: Shape, directions: Sequence[str]) -> str:
    """The lines for ``tc -batch``. Raises ValueError for an address that is none."""
    lines = [
        *(_out_lines(shape) if "out" in directions else ()),
        *([f"qdisc add dev {IFB} root handle {EFFECT} {shape.effect}"] if "in" in directions else ()),
        *(_filters(shape, "out") if "out" in directions else ()),
        *([f"qdisc add dev {shape.interface} ingress", *_filters(shape, "in")] if "in" in directions else ()),
    ]
    return "".join(f"{line}\n" for line in lines)


def load_command(text: str, directions: Sequence[str]) -> HostCommand:
    """The command that loads a batch. Without ``numifbs=0`` loading the module would add two devices to the host."""
    argv = ("sh", "-c", _ADD_IFB) if "in" in directions else ("tc", "-batch", "-")
    return HostCommand(argv, stdin=text)


def delete_argv(interface: str, first: str, directions: Sequence[str]) -> tuple[str, ...]:
    """The command that undoes a batch. ``first``: see :func:`first_filter`. Raises Unsupported if it is missing."""
    root = ("tc", "qdisc", "del", "dev", interface, "root", "handle", ROOT)
    if "in" not in directions:
        return root
    if not first:  # tc would delete the filters of others
        raise Unsupported("the first filter for inbound packets is not known", hint="undo it where the run was started")
    script = f'tc filter del dev "$1" ingress {first} && tc qdisc del dev "$1" ingress'
    script = f"{script}; ip link del {IFB}"
    if "out" in directions:
        script = f'tc qdisc del dev "$1" root handle {ROOT}; {script}'
    return ("sh", "-c", script, "nodefall", interface)


def renew_argv(interface: str) -> tuple[str, ...]:
    """The command that makes the kernel recreate its default root; fails if another root is set."""
    script = f'tc qdisc add dev "$1" root handle {ROOT} pfifo && tc qdisc del dev "$1" root handle {ROOT}'
    return ("sh", "-c", script, "nodefall", interface)


def first_filter(shape: Shape) -> str:
    """The protocol and preference of the first filter for inbound packets."""
    words = _filters(shape, "in")[0].split()
    return " ".join(words[words.index("protocol") : words.index("flower")])


def _out_lines(shape: Shape) -> list[str]:
    return [
        f"qdisc add dev {shape.interface} root handle {ROOT} prio bands 4",
        f"qdisc add dev {shape.interface} parent {_BAND} handle {EFFECT} {shape.effect}",
    ]


def _filters(shape: Shape, direction: str) -> list[str]:
    """The filters, with nodefall's own connection first. Each preference belongs to one protocol."""
    is_out = direction == "out"
    end, port = ("dst_ip", "src_port") if is_out else ("src_ip", "dst_port")
    first, keep = (1, f"classid {ROOT}1") if is_out else (_FIRST, "action pass")
    hit = f"classid {_BAND}" if is_out else f"action mirred egress redirect dev {IFB}"
    head = f"filter add dev {shape.interface} parent {ROOT if is_out else 'ffff:'} protocol"
    lines = []
    if shape.exempt:
        address = str(shape.exempt["address"])
        protocol = _protocol(address)
        match = f"flower ip_proto tcp {end} {parse_network(address)} {port} {shape.exempt['port']}"
        lines.append(f"{head} {protocol} pref {first} {match} {keep}")
        types = _NEIGHBOUR_DISCOVERY if protocol == "ipv6" else ()
        lines += [f"{head} ipv6 pref {first} flower ip_proto icmpv6 type {kind} {keep}" for kind in types]
    for peer in shape.peers:
        protocol = _protocol(peer)
        pref = first + (1 if protocol == "ip" else 2)
        lines.append(f"{head} {protocol} pref {pref} flower {end} {parse_network(peer)} {hit}")
    return lines


def _protocol(address: str) -> str:
    """Raises ValueError."""
    return "ip" if parse_network(address).version == 4 else "ipv6"

"""Network interfaces: their kinds, queueing disciplines and routes, as ip(8) and tc(8) print them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field

from chaos.core.command import HostCommand
from chaos.core.fact import ANY_TEXT, Known, host_fact, lines
from chaos.core.field_types import Model


def json_rows(text: str) -> list[dict[str, Any]]:
    """The mappings in a JSON array; empty for an empty text. Raises ValueError."""
    rows = json.loads(text) if text.strip() else []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{text.strip()[:80]!r} is not a list of mappings")
    return rows


@host_fact(
    "link-kinds",
    "kinds of network interfaces (veth, bridge, vxlan)",
    HostCommand(("ip", "-d", "-j", "link", "show"), sudo=False),
    form=ANY_TEXT,
)
def link_kinds(stdout: str, exit_code: int) -> dict[str, str]:
    """Mapping of interfaces to kinds as ip(8) names them: ``{"eth0": "veth"}``; "" for those of hardware, and lo."""
    if exit_code:
        raise ValueError("ip did not list the interfaces (package iproute2)")
    rows = json_rows(stdout)
    return {str(row["ifname"]): str((row.get("linkinfo") or {}).get("info_kind", "")) for row in rows}


@host_fact(
    "link-mtus",
    "bytes of the largest packet of each network interface",
    HostCommand(("ip", "-j", "link", "show"), sudo=False),
    form=ANY_TEXT,
)
def link_mtus(stdout: str, exit_code: int) -> dict[str, int]:
    """Mapping of interfaces to their MTU in bytes: ``{"lo": 65536, "eth0": 9001}``."""
    if exit_code:
        raise ValueError("ip did not list the interfaces (package iproute2)")
    rows = json_rows(stdout)
    return {str(row["ifname"]): int(row["mtu"]) for row in rows if isinstance(row.get("mtu"), int)}


_SHOW = "route show type blackhole"


@host_fact(
    "black-hole-routes",
    "networks that the host routes into a black hole, as Calico its blocks of pod addresses",
    HostCommand(("sh", "-c", f"ip -j -4 {_SHOW} && ip -j -6 {_SHOW}"), sudo=False),
)
def black_hole_routes(stdout: str, exit_code: int) -> list[str]:
    """List of networks in CIDR: ``["10.244.1.64/26"]``, without the default route.

    Calico routes each block of addresses that it has given to pods of this node into a black hole, so that addresses
    without a pod leave the host no more (confd's and Felix' routes with protocol 80 or bird).
    """
    if exit_code:
        raise ValueError("ip did not list the routes (package iproute2)")
    found = [str(row["dst"]) for line in stdout.splitlines() for row in json_rows(line) if "dst" in row]
    return [network for network in found if network != "default"]


DEFAULT = "0:"  # handle of a queueing discipline that the kernel has made by itself


class QdiscsParams(Model):
    interface: str | None = Field(
        None, pattern=r"^[\w.@:-]{1,15}$", description="The name of the interface. By default, all interfaces."
    )


def _qdiscs_command(_: Known, options: QdiscsParams) -> HostCommand:
    interface = options.interface
    # As root: tc is in /sbin, which other users do not search.
    return HostCommand(("tc", "-j", "qdisc", "show", *(("dev", interface) if interface else ())))


@host_fact("qdiscs", "queueing disciplines of network interfaces", _qdiscs_command, params=QdiscsParams, form=ANY_TEXT)
def qdiscs(stdout: str, exit_code: int, options: QdiscsParams) -> dict[str, list[dict[str, Any]]]:
    """Mapping of interfaces to their queueing disciplines: ``{"eth0": [{"kind": "fq_codel", "handle": "0:"}]}``.

    In tc's order and with all that it prints, but for the number of references. Those with handle ``0:`` are the
    kernel's own default, whose options cannot be changed. They are left out: some follow from the MTU at the time when
    the kernel made it (fq_codel_init, net/sched/sch_fq_codel.c).
    """
    if exit_code:
        raise ValueError("tc did not list the queueing disciplines (package iproute2)")
    found: dict[str, list[dict[str, Any]]] = {}
    for row in json_rows(stdout):
        interface = str(row.pop("dev", options.interface))  # not printed where it was asked for
        row.pop("refcnt", None)
        if row.get("handle") == DEFAULT:
            row.pop("options", None)
        found.setdefault(interface, []).append(row)
    return found


ROOT, EFFECT = "4e0f:", "4e10:"  # handles of nodefall's own; the kernel gives handles from 8000: on
IFB = "nodefall0"  # device through which inbound packets are redirected
_NETEM_SCRIPT = "tc -s -j qdisc show && ip -j link show"


@host_fact(
    "netem",
    "whether nodefall delays, drops or changes packets on an interface, and how many",
    HostCommand(("sh", "-c", _NETEM_SCRIPT)),  # as root: tc is in /sbin, which other users do not search
)
def netem(stdout: str, exit_code: int) -> bool | dict[str, str | int]:
    """False without that qdisc, else the mapping ``{"interface": "eth0", "passed": 80, "dropped": 20}`` of packets.

    The interface is ``nodefall0`` where only inbound packets are hit, also where only that device is left.
    """
    if exit_code:
        raise ValueError("tc did not list the queueing disciplines (package iproute2)")
    rows, links = (json_rows(line) for line in _two_lines(stdout))
    found = {str(row.get("dev")) for row in rows if row.get("handle") == ROOT}
    found |= {IFB for link in links if link.get("ifname") == IFB}
    if not found:
        return False
    ours = [row for row in rows if row.get("handle") == EFFECT and row.get("dev") in found]
    return {"interface": min(found), **_counted(ours)}


def _two_lines(stdout: str) -> tuple[str, str]:
    """Split the output into two lines; tc prints an empty line for an empty list. Raises ValueError."""
    lines = stdout.strip("\n").split("\n") if stdout.strip() else []
    if len(lines) not in (1, 2):
        raise ValueError("tc and ip did not print exactly one line each")
    return ("", lines[0]) if len(lines) == 1 else (lines[0], lines[1])


def _counted(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(row.get(key, 0) for row in rows) for name, key in (("passed", "packets"), ("dropped", "drops"))}


# The module of ifb would otherwise add two devices to the host.
_SUPPORT_SCRIPT = "modprobe -q ifb numifbs=0; ip link add nodefall0 type ifb; tc -force -batch -"
_SUPPORT_TRIAL = """qdisc add dev lo root handle 4e0f: prio bands 4
filter add dev lo parent 4e0f: protocol ip pref 1 flower dst_ip 192.0.2.1/32 classid 4e0f:4
qdisc add dev lo parent 4e0f:4 handle 4e10: netem delay 2ms 1ms
qdisc add dev lo parent 4e0f:3 handle 4e11: netem delay 2ms 1ms distribution normal
qdisc add dev lo parent 4e0f:2 handle 4e12: tbf rate 1000000bit burst 3000 limit 50000
qdisc add dev lo ingress
filter add dev lo parent ffff: protocol ip pref 1 flower ip_proto tcp src_ip 192.0.2.1/32 dst_port 22 action pass
filter add dev lo parent ffff: protocol ip pref 2 flower src_ip 192.0.2.1/32 action mirred egress redirect dev nodefall0
qdisc show dev lo
filter show dev lo parent 4e0f:
filter show dev lo parent ffff:
"""
# Modules without which no packet is delayed, in the order in which they are tried, and what is then shown.
_REQUIRED = {"sch_prio": "qdisc prio 4e0f:", "cls_flower": "classid 4e0f:4", "sch_netem": "qdisc netem 4e10:"}
_SIGNS = {  # in what is shown
    "netem": ("qdisc netem 4e10:",),
    "normal": ("qdisc netem 4e11:",),
    "tbf": ("qdisc tbf 4e12:",),
    "ingress": ("gact action pass", "to device nodefall0)"),
}


# What the kernel and tc(8) of the host can do to packets, tried in a separate namespace.
@host_fact(
    "netem-support",
    "what kernel and tc(8) can do to packets (sch_netem, sch_prio, sch_tbf, cls_flower, act_gact, act_mirred, ifb)",
    HostCommand(("unshare", "--net", "sh", "-c", _SUPPORT_SCRIPT), stdin=_SUPPORT_TRIAL, accept=(0, 1, 2)),
    form=lines(r"(?:qdisc |filter |[ \t])[^\n]*", ""),
)
def netem_support(stdout: str, _exit_code: int) -> list[str]:  # not 0 where one of them is lacking
    """List of what is possible, at least ``["netem"]``.

    ``normal``: delays of that distribution, a file of tc. ``tbf``: a limited rate. ``ingress``: inbound
    packets too.
    """
    if lacking := [module for module, sign in _REQUIRED.items() if sign not in stdout]:
        raise ValueError(f"the kernel has no module {lacking[0]}, or tc cannot use it: load it, or install iproute2")
    return [name for name, signs in _SIGNS.items() if all(sign in stdout for sign in signs)]

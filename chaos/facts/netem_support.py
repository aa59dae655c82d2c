"""What the kernel and tc(8) of the host can do to packets, tried in a separate namespace."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# The module of ifb would otherwise add two devices to the host.
_SCRIPT = "modprobe -q ifb numifbs=0; ip link add nodefall0 type ifb; tc -force -batch -"
_TRIAL = """qdisc add dev lo root handle 4e0f: prio bands 4
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
_SIGNS = {  # in what is shown
    "netem": ("qdisc netem 4e10:",),
    "normal": ("qdisc netem 4e11:",),
    "tbf": ("qdisc tbf 4e12:",),
    "ingress": ("gact action pass", "to device nodefall0)"),
}


class NetemSupport(HostFact):
    """List of what is possible, at least ``["netem"]``.

    ``normal``: delays of that distribution, a file of tc. ``tbf``: a limited rate. ``ingress``: inbound
    packets too.
    """

    name = "netem-support"
    summary = (
        "what kernel and tc(8) can do to packets (sch_netem, sch_prio, sch_tbf, cls_flower, act_gact, act_mirred, ifb)"
    )
    command = HostCommand(("unshare", "--net", "sh", "-c", _SCRIPT), stdin=_TRIAL, accept=(0, 1, 2))

    def parse(self, stdout: str, exit_code: int) -> list[str]:  # noqa: ARG002 - not 0 where one of them is lacking
        found = [name for name, signs in _SIGNS.items() if all(sign in stdout for sign in signs)]
        if "netem" not in found or "classid 4e0f:4" not in stdout:
            raise ValueError("kernel or tc cannot delay packets (sch_netem, sch_prio, cls_flower; package iproute2)")
        return found


FACT = NetemSupport()

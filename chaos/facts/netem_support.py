"""Whether the kernel and tc(8) of the host can delay and drop packets, tried in a separate namespace."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_TRIAL = """qdisc add dev lo root handle 4e0f: prio bands 4
qdisc add dev lo parent 4e0f:4 handle 4e10: netem delay 2ms 1ms
filter add dev lo parent 4e0f: protocol ip pref 1 flower dst_ip 192.0.2.1/32 classid 4e0f:4
qdisc show dev lo
qdisc change dev lo parent 4e0f:4 handle 4e10: netem delay 2ms 1ms distribution normal
"""


class NetemSupport(HostFact):
    """List of the distributions of delays that are possible: ``["uniform", "normal"]``; the latter is a file of tc."""

    name = "netem-support"
    summary = "distributions of packet delays that kernel and tc(8) support (sch_netem, sch_prio, cls_flower)"
    command = HostCommand(("unshare", "--net", "tc", "-batch", "-"), stdin=_TRIAL)

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if "netem" not in stdout:
            raise ValueError("kernel or tc cannot delay packets (sch_netem, sch_prio, cls_flower; package iproute2)")
        return ["uniform"] if exit_code else ["uniform", "normal"]


FACT = NetemSupport()

"""logind, without which there is no graceful shutdown."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refusal
from chaos.doctor.signs import Need, Signs


class Logind(Check):
    """Facts 1.7: without logind or D-Bus the kubelet's shutdown manager is off, and the kubelet does not mind."""

    name = "logind"
    summary = "logind answers on D-Bus"
    facts = ("inhibitors",)

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        for host in signs.reached():
            if "inhibitors" in host.target.facts:
                yield ok("it answers", host.node)
                continue
            told = f"{host.node}: logind does not answer, so no shutdown is graceful: {host.why('inhibitors')}"
            mend = "install dbus and systemd-logind, start them, then restart the kubelet"
            yield refusal(told, mend, host.node, frozenset({Need.LOGIND}))


CHECK = Logind()

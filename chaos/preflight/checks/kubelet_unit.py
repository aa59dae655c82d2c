"""The systemd unit of the kubelet."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok, warning
from chaos.preflight.observations import ClusterObservations, Need

_CONTROL_PLANE_UNITS = (
    "k3s.service",
    "rke2-server.service",
    "snap.microk8s.daemon-kubelite.service",
)  # the control plane too


class KubeletUnit(Check):
    """What is stopped and restarted, also by undo."""

    name = "kubelet-unit"
    summary = "a systemd unit that is known runs the kubelet"
    facts = ("kubelet-unit",)

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        needs = frozenset({Need.HOST})
        for host in signs.reachable_hosts():
            unit = host.fact("kubelet-unit")
            if not unit:
                told = f"{host.node}: no unit of the kubelet is known: {host.unknown_reason('kubelet-unit')}"
                yield warning(told, "see systemctl list-units on the host", host.node, needs)
            elif unit in _CONTROL_PLANE_UNITS:
                yield note(f"{host.node}: {unit} runs the control plane beside the kubelet", "", host.node, needs)
            else:
                yield ok(unit, host.node)


CHECK = KubeletUnit()

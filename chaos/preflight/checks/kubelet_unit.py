"""The systemd unit of the kubelet."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok, warning
from chaos.preflight.observations import ClusterObservations, Need

_CONTROL_PLANE_UNITS = (
    "k3s.service",
    "rke2-server.service",
    "snap.microk8s.daemon-kubelite.service",
)  # they run the control plane too


class KubeletUnit(Check):
    """Faults and undo stop and restart this unit."""

    name = "kubelet-unit"
    summary = "a known systemd unit runs the kubelet"
    systems = frozenset({"linux"})
    facts = ("kubelet-unit",)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        needs = frozenset({Need.HOST})
        for host in observations.reachable_hosts():
            unit = host.fact("kubelet-unit")
            if not unit:
                message = f"{host.node}: the kubelet's unit is unknown: {host.unknown_reason('kubelet-unit')}"
                yield warning(message, "check systemctl list-units on the host", host.node, needs)
            elif unit in _CONTROL_PLANE_UNITS:
                yield note(f"{host.node}: {unit} runs the control plane as well as the kubelet", "", host.node, needs)
            else:
                yield ok(unit, host.node)


CHECK = KubeletUnit()

"""Hosts of the control plane that no label shows."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok, refusal
from chaos.preflight.observations import ClusterObservations


class ProtectedRole(Check):
    """A Node without a role label may run etcd or an API server: its host shows that."""

    name = "protected-role"
    summary = "the host of a worker runs no etcd and no API server"
    facts = ("control-plane-files",)
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        protects = "control-plane" in observations.inventory.protected.roles
        for host in observations.reachable_hosts():
            paths = host.fact("control-plane-files")
            if not paths or observations.view.role(host.node) != "worker":
                yield ok("it is what its labels say", host.node)
                continue
            message = f"{host.node} has no role label of the control plane, but {paths[0]} exists on its host"
            if protects:
                hint = "choose another target; on a former control plane, remove what is left there"
                yield refusal(f"{message}: the inventory protects control planes", hint, host.node)
            else:
                yield note(message, "", host.node)


CHECK = ProtectedRole()

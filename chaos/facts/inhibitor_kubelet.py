"""The kubelet's delay lock on shutdown: without it a power-off is not graceful."""

from __future__ import annotations

from chaos.facts.inhibitor_locks import LIST_INHIBITORS, parse_inhibitors
from chaos.model.fact import HostFact


class InhibitorKubelet(HostFact):
    """True or false: whether the kubelet holds a delay lock."""

    name = "inhibitor-kubelet"
    summary = "whether the kubelet holds a delay lock on shutdown"
    command = LIST_INHIBITORS

    def parse(self, stdout: str, exit_code: int) -> bool:
        locks = parse_inhibitors(stdout, exit_code)
        return any(
            lock["who"] == "kubelet" and "shutdown" in lock["what"].split(":") and lock["mode"] == "delay"
            for lock in locks
        )


FACT = InhibitorKubelet()

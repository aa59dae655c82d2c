"""Programs that hold a delay lock on shutdown."""

from __future__ import annotations

from chaos.facts.inhibitor_locks import LIST_INHIBITORS, parse_inhibitors
from chaos.model.fact import HostFact


class InhibitorHolders(HostFact):
    """Sorted list of names in logind, as ``["kubelet"]``; a program with two locks is listed twice."""

    name = "inhibitor-holders"
    summary = "programs that hold a delay lock on shutdown"
    command = LIST_INHIBITORS

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        locks = parse_inhibitors(stdout, exit_code)
        return sorted(
            lock["who"] for lock in locks if lock["mode"] == "delay" and "shutdown" in lock["what"].split(":")
        )


FACT = InhibitorHolders()

"""Inhibitor locks of logind."""

from __future__ import annotations

import json
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

LIST_INHIBITORS = HostCommand(
    (
        "busctl",
        "--json=short",
        "call",
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "ListInhibitors",
    ),
    sudo=False,
)


def parse_inhibitors(stdout: str, exit_code: int) -> list[dict[str, Any]]:
    """Locks as {who, what, mode, why}, of busctl's JSON. Raises ValueError."""
    if exit_code:
        raise ValueError("logind did not answer")
    try:
        locks = json.loads(stdout)["data"][0]
        return [{"who": who, "what": what, "mode": mode, "why": why} for what, who, why, mode, _, _ in locks]
    except (json.JSONDecodeError, KeyError, IndexError, TypeError) as error:
        raise ValueError("logind's list of inhibitor locks is not understood") from error


class InhibitorLocks(HostFact):
    """List of ``{"who": "kubelet", "what": "shutdown", "mode": "delay", "why": REASON}``, in logind's order."""

    name = "inhibitor-locks"
    summary = "inhibitor locks held at logind"
    command = LIST_INHIBITORS

    def parse(self, stdout: str, exit_code: int) -> list[dict[str, Any]]:
        return parse_inhibitors(stdout, exit_code)


FACT = InhibitorLocks()

"""Commands as data: what is sent to a host, to the Kubernetes API or to a power control, and what came back."""

from __future__ import annotations

import shlex
from typing import Any

from msgspec import Struct


class HostCommand(Struct, frozen=True, tag="host", omit_defaults=True):
    """A program on a host. ``timeout`` in seconds of wall time; ``accept`` are the exit codes that mean success."""

    argv: tuple[str, ...]
    stdin: str = ""
    timeout: float = 30.0
    accept: tuple[int, ...] = (0,)
    ends_session: bool = False  # a lost line is the expected outcome
    sudo: bool = True  # as root; through sudo where the login user is another

    def __str__(self) -> str:
        return shlex.join(self.argv)


class KubeCommand(Struct, frozen=True, tag="kube", omit_defaults=True):
    """One request to the Kubernetes API. ``accept`` are the HTTP statuses that mean success."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    content_type: str = "application/json"
    accept: tuple[int, ...] = (200, 201, 202)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class PowerCommand(Struct, frozen=True, tag="power"):
    """``on`` or ``off`` (at once, not graceful), through the node's power control."""

    verb: str

    def __str__(self) -> str:
        return f"power {self.verb}"


Command = HostCommand | KubeCommand | PowerCommand


class Outcome(Struct, frozen=True, omit_defaults=True):
    """``delivery``: not-sent (may be retried), answered, or lost (sent, no answer: it may have happened).

    ``began``: when the host says it started (seconds since the epoch, its clock). ``exit``: the program's exit
    code or the HTTP status.
    """

    delivery: str
    exit: int | None = None
    stdout: str = ""
    stderr: str = ""
    began: float | None = None
    error: str = ""


NOT_SENT, ANSWERED, LOST = "not-sent", "answered", "lost"


def succeeded(command: Command, outcome: Outcome) -> bool:
    """True if the command answered as it should, or was lost where that is expected."""
    if outcome.delivery == LOST:
        return isinstance(command, HostCommand) and command.ends_session
    accept = () if isinstance(command, PowerCommand) else command.accept
    return outcome.delivery == ANSWERED and (not accept or outcome.exit in accept)

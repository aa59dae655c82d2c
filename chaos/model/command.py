"""Commands as data: what is sent to a host, to the Kubernetes API or to a power control, and what came back."""

from __future__ import annotations

import json
import shlex
from enum import StrEnum
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


MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class KubeCommand(Struct, frozen=True, tag="kube", omit_defaults=True):
    """One request to the Kubernetes API. ``accept`` are the HTTP statuses that mean success."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    content_type: str = "application/json"
    accept: tuple[int, ...] = (200, 201, 202)
    evidence_pointers: tuple[str, ...] = ()  # JSON pointers to what is recorded of the answer

    def __str__(self) -> str:
        body = "" if self.body is None or self.method != "PATCH" else f" {json.dumps(self.body)}"
        return f"{self.method} {self.path}{body}"


class PodSelector(Struct, frozen=True, omit_defaults=True):
    """Which pods, looked up when a command is sent: those that everything given fits."""

    node: str = ""
    namespace: str = ""
    name: str = ""
    selector: str = ""

    def __str__(self) -> str:
        given = [
            f"{what} {value}"
            for what, value in (("namespace", self.namespace), ("name", self.name), ("labels", self.selector))
            if value
        ]
        return f"pods{f' on {self.node}' if self.node else ''}" + (f" ({', '.join(given)})" if given else "")


class DrainRules(Struct, frozen=True, omit_defaults=True):
    """Flags of kubectl drain."""

    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False


class PodVerb(StrEnum):
    """What a PodsCommand does to each pod."""

    EVICT = "evict"
    DELETE = "delete"
    REMOVE_FINALIZERS = "remove-finalizers"
    MARK_DISRUPTION = "mark-disruption"


class PodsCommand(Struct, frozen=True, tag="pods", omit_defaults=True):
    """Evict, delete, remove-finalizers or mark-disruption, for each of ``pods``.

    ``grace`` in seconds, None is each pod's own. What is refused is tried again, and the end of the pods awaited, for
    ``wait`` seconds of the cluster's time; 0: each is asked once. ``rules``: first sort the pods as kubectl drain does.
    The outcome's exit is 0 when everything was done, 1 when something was refused or left, else 2.
    """

    verb: PodVerb
    pods: PodSelector
    grace: int | None = None
    wait: float = 0.0
    rules: DrainRules | None = None

    @property
    def accept(self) -> tuple[int, ...]:
        """A refusal is an answer too."""
        return (0, 1)

    def __str__(self) -> str:
        grace = "" if self.grace is None else f", grace {self.grace}s"
        wait = f", for up to {self.wait:g}s" if self.wait else ""
        return f"{self.verb} {self.pods}{grace}{wait}"


class TaintsCommand(Struct, frozen=True, tag="taints", omit_defaults=True):
    """Take taints from a node and put others there. ``remove``: ``KEY`` or ``KEY:EFFECT``; ``add``: as in the spec."""

    node: str
    remove: tuple[str, ...] = ()
    add: tuple[dict[str, str], ...] = ()
    accept: tuple[int, ...] = (200,)

    def __str__(self) -> str:
        added = [f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in self.add]
        return f"taints of {self.node}: {' '.join([*(f'-{name}' for name in self.remove), *(f'+{t}' for t in added)])}"


class PowerVerb(StrEnum):
    """What a PowerCommand does: power on, cut the power (at once, not graceful), set the restart policy."""

    ON = "on"
    OFF = "off"
    RESTART_POLICY = "restart-policy"


class PowerState(StrEnum):
    """State of a machine as its power control reports it."""

    ON = "on"
    OFF = "off"


class PowerCommand(Struct, frozen=True, tag="power", omit_defaults=True):
    """``on``, ``off`` (at once, not graceful) or ``restart-policy`` (set to ``value``), through the power control."""

    verb: PowerVerb
    value: str = ""

    def __str__(self) -> str:
        return f"power {self.verb} {self.value}".rstrip()


ApiCommand = KubeCommand | PodsCommand | TaintsCommand
Command = HostCommand | ApiCommand | PowerCommand


class Delivery(StrEnum):
    """What is known of a command that was to be sent."""

    NOT_SENT = "not-sent"  # may be retried
    ANSWERED = "answered"
    LOST = "lost"  # sent without an answer: it may have happened


class Outcome(Struct, frozen=True, omit_defaults=True):
    """Result of a command.

    ``began``: when the host says it started (seconds since the epoch, its clock). ``exit``: the program's exit
    code or the HTTP status. ``evidence``: what the recording keeps of the answer.
    """

    delivery: Delivery
    exit: int | None = None
    stdout: str = ""
    stderr: str = ""
    began: float | None = None
    error: str = ""
    evidence: dict[str, Any] = {}


def is_success(command: Command, outcome: Outcome) -> bool:
    """True if the command answered as it should, or was lost where that is expected."""
    if outcome.delivery is Delivery.LOST:
        return isinstance(command, HostCommand) and command.ends_session
    accept = () if isinstance(command, PowerCommand) else command.accept
    return outcome.delivery is Delivery.ANSWERED and (not accept or outcome.exit in accept)

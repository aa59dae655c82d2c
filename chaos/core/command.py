"""Commands as data: for a host, the Kubernetes API or a power control; and their outcomes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from chaos.core.encoded_script import decode_script


class HostCommand(Struct, frozen=True, tag="host", omit_defaults=True):
    """A program on a host. ``timeout`` in seconds of wall time; ``accept``: the exit codes of success.

    ``undecided``: parts of standard error, or of the output of Windows' sc.exe, with which a failure leaves open what
    happened, so that the proof decides. ``refusals``: exit codes with which the program has done nothing, and what they
    mean.
    """

    argv: tuple[str, ...]
    stdin: str = ""
    timeout: float = 30.0
    accept: tuple[int, ...] = (0,)
    ends_session: bool = False  # a lost connection is the expected outcome
    sudo: bool = True  # as root, through sudo for another login user
    undecided: tuple[str, ...] = ()
    refusals: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        """The command line; of an encoded script the script."""
        script = decode_script(self.argv)
        return f"powershell.exe: {script}" if script else shlex.join(self.argv)


MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class KubeCommand(Struct, frozen=True, tag="kube", omit_defaults=True):
    """One request to the Kubernetes API. ``accept``: the HTTP status codes of success."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    content_type: str = "application/json"
    accept: tuple[int, ...] = (200, 201, 202)
    evidence_pointers: tuple[str, ...] = ()  # JSON pointers to the parts of the response that are recorded

    def __str__(self) -> str:
        body = "" if self.body is None or self.method != "PATCH" else f" {json.dumps(self.body)}"
        return f"{self.method} {self.path}{body}"


class PodSelector(Struct, frozen=True, omit_defaults=True):
    """Selector of pods, evaluated when a command is sent; pods must match every field that is set."""

    node: str = ""
    namespace: str = ""
    name: str = ""
    selector: str = ""

    def __str__(self) -> str:
        parts = [
            f"{what} {value}"
            for what, value in (("namespace", self.namespace), ("name", self.name), ("labels", self.selector))
            if value
        ]
        return f"pods{f' on {self.node}' if self.node else ''}" + (f" ({', '.join(parts)})" if parts else "")


class DrainRules(Struct, frozen=True, omit_defaults=True):
    """Flags of kubectl drain."""

    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False


class PodVerb(StrEnum):
    """Operations of a PodsCommand."""

    EVICT = "evict"
    DELETE = "delete"
    REMOVE_FINALIZERS = "remove-finalizers"
    MARK_DISRUPTION = "mark-disruption"


class PodsCommand(Struct, frozen=True, tag="pods", omit_defaults=True):
    """One operation on each of ``pods``.

    ``grace`` in seconds, None for each pod's terminationGracePeriodSeconds. For ``wait`` seconds of cluster time,
    refused operations are retried and the deletion of the pods is awaited; 0: one request per pod. ``rules``: filter
    the pods as kubectl drain does. The outcome's exit is 0 for success, 1 if a pod was refused or remains, else 2.
    """

    verb: PodVerb
    pods: PodSelector
    grace: int | None = None
    wait: float = 0.0
    rules: DrainRules | None = None

    @property
    def accept(self) -> tuple[int, ...]:
        """Exit codes that count as an answer: refusals too."""
        return (0, 1)

    def __str__(self) -> str:
        grace = "" if self.grace is None else f", grace {self.grace}s"
        wait = f", for up to {self.wait:g}s" if self.wait else ""
        return f"{self.verb} {self.pods}{grace}{wait}"


class TaintsCommand(Struct, frozen=True, tag="taints", omit_defaults=True):
    """Removal and addition of a node's taints. ``remove``: ``KEY`` or ``KEY:EFFECT``; ``add``: as in the spec.

    ``annotations`` of the Node are set by the same request, or removed where the value is None.
    """

    node: str
    remove: tuple[str, ...] = ()
    add: tuple[dict[str, str], ...] = ()
    accept: tuple[int, ...] = (200,)
    annotations: dict[str, str | None] = {}

    def __str__(self) -> str:
        added = [f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in self.add]
        noted = f", annotations {json.dumps(self.annotations)}" if self.annotations else ""
        changes = [*(f"-{name}" for name in self.remove), *(f"+{taint}" for taint in added)]
        return f"taints of {self.node}: {' '.join(changes)}{noted}"


class PowerVerb(StrEnum):
    """Operations of a power control: on, off (at once), soft-off (the guest is asked), set the restart policy."""

    ON = "on"
    OFF = "off"
    SOFT_OFF = "soft-off"
    RESTART_POLICY = "restart-policy"


class PowerState(StrEnum):
    """Power state of a machine."""

    ON = "on"
    OFF = "off"


class PowerCapability(StrEnum):
    """A capability of a power control; ``state``: its state can be read at any time."""

    ON = "on"
    OFF = "off"
    SOFT_OFF = "soft-off"
    STATE = "state"


class PowerCommand(Struct, frozen=True, tag="power", omit_defaults=True):
    """One operation of a power control; ``value`` is the restart policy to set."""

    verb: PowerVerb
    value: str = ""

    def __str__(self) -> str:
        return f"power {self.verb} {self.value}".rstrip()


ApiCommand = KubeCommand | PodsCommand | TaintsCommand
Command = HostCommand | ApiCommand | PowerCommand


class Delivery(StrEnum):
    """Delivery of a command."""

    NOT_SENT = "not-sent"  # may be retried
    ANSWERED = "answered"
    LOST = "lost"  # sent without an answer: it may have happened


class Outcome(Struct, frozen=True, omit_defaults=True):
    """Result of a command.

    ``began``: start of the program by the clock of the host (seconds since the epoch). ``exit``: exit code of the
    program or HTTP status. ``evidence``: the parts of the response that are recorded.
    """

    delivery: Delivery
    exit: int | None = None
    stdout: str = ""
    stderr: str = ""
    began: float | None = None
    error: str = ""
    evidence: dict[str, Any] = {}


def is_success(command: Command, outcome: Outcome) -> bool:
    """Whether the command was accepted, or lost where that is expected."""
    if outcome.delivery is Delivery.LOST:
        return isinstance(command, HostCommand) and command.ends_session
    accept = () if isinstance(command, PowerCommand) else command.accept
    return outcome.delivery is Delivery.ANSWERED and (not accept or any(_has_code(outcome, code) for code in accept))


def undecided_answer(command: Command, outcome: Outcome) -> str:
    """The part of a failure's output that leaves open what happened; "" if the outcome is decided."""
    if not isinstance(command, HostCommand) or outcome.delivery is not Delivery.ANSWERED:
        return ""
    if is_success(command, outcome):
        return ""
    return next((text for text in command.undecided if text in outcome.stderr or text in outcome.stdout), "")


def refusal(command: Command, outcome: Outcome) -> str:
    """Why the program refused to do anything, or "" if it did not refuse."""
    if not isinstance(command, HostCommand) or outcome.delivery is not Delivery.ANSWERED:
        return ""
    return next((why for code, why in command.refusals if _has_code(outcome, code)), "")


def _has_code(outcome: Outcome, code: int) -> bool:
    """Over SSH a Windows program's code may arrive as 1: then the one in its output counts.

    That is ``(1190)`` of shutdown.exe on standard error, and `` 1056:`` of sc.exe on standard output.
    """
    if outcome.exit != 1 or code in (0, 1):
        return outcome.exit == code
    return f"({code})" in outcome.stderr or f" {code}:" in outcome.stdout


_SHOWN_OUTPUT = 200  # characters of a failed program's output
_UNIT_NOT_LOADED = 5  # systemctl's exit code (LSB: program is not installed)


def had_no_effect(command: Command, outcome: Outcome) -> bool:
    """True if the outcome excludes any effect: not sent, unit not loaded, refused, or rejected by the API server.

    Any other failure may have had part of its effect.
    """
    if outcome.delivery is Delivery.NOT_SENT:
        return True
    if outcome.delivery is not Delivery.ANSWERED or is_success(command, outcome):
        return False
    if isinstance(command, HostCommand):
        is_unknown_unit = outcome.exit == _UNIT_NOT_LOADED and _is_for_one_unit(command.argv)
        return is_unknown_unit or bool(refusal(command, outcome))
    if isinstance(command, (KubeCommand, TaintsCommand)):
        return 400 <= (outcome.exit or 0) < 500
    return False


def _is_for_one_unit(argv: Sequence[str]) -> bool:
    """True for ``systemctl VERB UNIT``: with several units, some may have been loaded."""
    words = [word for word in argv if not word.startswith("-")]
    return words[0] == "systemctl" and len(words) == 3


def failure_reason(command: Command, outcome: Outcome) -> str:
    """Programs of Windows write their errors to standard output."""
    code = f"exit code {outcome.exit}"
    shown = " ".join(outcome.stdout.split())[:_SHOWN_OUTPUT]
    reason = refusal(command, outcome) or outcome.error or outcome.stderr.strip()
    return reason or (f"{code}: {shown}" if shown else code)

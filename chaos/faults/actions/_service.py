"""Parts shared by actions on the kubelet's unit: its state, its failsafe timer, and how it is restored."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import NODE_READY, FactCheck, Target, Undo, UndoStep
from chaos.core.command import HostCommand
from chaos.core.node_mark import NodeUnit, Tag

ACTIVE = "active"
_READY_GRACE_SECONDS = 15.0  # in which a kubelet that has received the cancellation becomes Ready


class ServiceState(Struct, frozen=True):
    """The state of the stopped unit; ``seconds`` until the failsafe timer starts it, ``tag`` for the timer's name."""

    unit: NodeUnit
    tag: Tag
    seconds: float


class KubeletState(ServiceState, frozen=True):
    """The kubelet's unit, and whether the kubelet held its inhibitor lock."""

    had_inhibitor: bool


def capture_kubelet_state(target: Target, why: str) -> KubeletState:
    """Capture the state of the kubelet's unit. Raises Unsupported with ``why`` if the unit is unknown."""
    return kubelet_state(target, target.require_fact("kubelet-unit", why))


def kubelet_state(target: Target, unit: str) -> KubeletState:
    """The state of the kubelet that runs as ``unit``."""
    return KubeletState(unit, target.tag, target.max_duration, bool(target.facts.get("inhibitor-kubelet")))


def systemctl(verb: str, unit: str) -> HostCommand:
    """``systemctl VERB UNIT``, which waits for the unit's job; a kubelet under systemd notifies when it is ready."""
    return HostCommand(("systemctl", verb, unit), timeout=100.0)


def restore_kubelet(state: KubeletState) -> Undo:
    """Start the kubelet; proven when it is active and Ready and holds its lock if it did before."""
    active = FactCheck("kubelet-state", ACTIVE)
    steps = (UndoStep(systemctl("start", state.unit), unless=active),)
    return Undo(steps, (active, *inhibitor_checks(state), NODE_READY))


def restore_kubelet_after_cancel(state: KubeletState) -> Undo:
    """Restart a kubelet that has missed the cancellation of a shutdown, or lost its lock with it."""
    restart = systemctl("restart", state.unit)
    checks = (NODE_READY, *inhibitor_checks(state))
    return Undo(tuple(UndoStep(restart, unless=check, grace_seconds=_READY_GRACE_SECONDS) for check in checks), checks)


def inhibitor_checks(state: KubeletState) -> tuple[FactCheck, ...]:
    """Checks that the kubelet holds its lock, if it did before."""
    return (FactCheck("inhibitor-kubelet", True),) if state.had_inhibitor else ()

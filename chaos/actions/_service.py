"""What the actions that stop a service, or freeze it, share: the timer that brings it back, and the undo."""

from __future__ import annotations

from chaos.model.action import FactCheck, FailsafeTimer, Target, Undo, UndoState, UndoStep
from chaos.model.command import HostCommand

ACTIVE = "active"
_READY_GRACE_SECONDS = 15.0  # seconds in which a kubelet that was told of a cancellation is Ready again


def capture_kubelet_state(target: Target, why: str) -> UndoState:
    """The unit, and whether the kubelet held its lock. Raises Unsupported."""
    unit = target.require_fact("kubelet-unit", why)
    return {"unit": unit, "lock": bool(target.facts.get("kubelet-inhibitor")), "tag": target.tag}


def systemctl(verb: str, unit: str) -> HostCommand:
    """Waits for the unit's job, as systemctl does; a kubelet under systemd says when it is ready."""
    return HostCommand(("systemctl", verb, unit), timeout=100.0)


def start_failsafe(memory: UndoState, seconds: float) -> FailsafeTimer:
    """The timer that starts the unit, should we be gone."""
    return FailsafeTimer(timer_unit(memory), seconds, ("systemctl", "start", memory["unit"]))


def timer_unit(memory: UndoState) -> str:
    return f"nodefall-{memory['tag']}"


def restore_kubelet(memory: UndoState, *first: UndoStep, disarm: str = "") -> Undo:
    """Undo of whatever ended the kubelet: start it, and see that it is active, Ready and holds its lock as before."""
    active = FactCheck("kubelet-state", ACTIVE)
    lock = (FactCheck("kubelet-inhibitor", True),) if memory["lock"] else ()
    steps = (*first, UndoStep(systemctl("start", memory["unit"]), unless=active))
    return Undo(steps, (active, *lock, FactCheck("node-ready", True)), disarm=disarm)


def restore_kubelet_after_cancel(memory: UndoState) -> Undo:
    """Undo of a cancellation of which the kubelet may not have been told, or that cost it its lock: restart it."""
    restart = systemctl("restart", memory["unit"])
    wanted = (FactCheck("node-ready", True), *((FactCheck("kubelet-inhibitor", True),) if memory["lock"] else ()))
    return Undo(tuple(UndoStep(restart, unless=check, grace_seconds=_READY_GRACE_SECONDS) for check in wanted), wanted)

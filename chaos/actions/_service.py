"""What the actions that stop a service, or freeze it, share: the timer that brings it back, and the undo."""

from __future__ import annotations

from chaos.model.action import Check, Memory, SelfHeal, Target, Undo, UndoStep
from chaos.model.command import HostCommand

ACTIVE = "active"
_TOLD = 15.0  # seconds in which a kubelet that was told of a cancellation is Ready again


def kubelet_memory(target: Target, why: str) -> Memory:
    """The unit, and whether the kubelet held its lock. Raises Unsupported."""
    unit = target.need("kubelet-unit", why)
    return {"unit": unit, "lock": bool(target.facts.get("kubelet-inhibitor")), "tag": target.tag}


def systemctl(verb: str, unit: str) -> HostCommand:
    """Waits for the unit's job, as systemctl does; a kubelet under systemd says when it is ready."""
    return HostCommand(("systemctl", verb, unit), timeout=100.0)


def start_again(memory: Memory, seconds: float) -> SelfHeal:
    """The timer that starts the unit, should we be gone."""
    return SelfHeal(timer(memory), seconds, ("systemctl", "start", memory["unit"]))


def timer(memory: Memory) -> str:
    return f"nodefall-{memory['tag']}"


def kubelet_runs(memory: Memory, *first: UndoStep, disarm: str = "") -> Undo:
    """Undo of whatever ended the kubelet: start it, and see that it is active, Ready and holds its lock as before."""
    active = Check("kubelet-state", ACTIVE)
    lock = (Check("kubelet-inhibitor", True),) if memory["lock"] else ()
    steps = (*first, UndoStep(systemctl("start", memory["unit"]), unless=active))
    return Undo(steps, (active, *lock, Check("node-ready", True)), disarm=disarm)


def kubelet_told(memory: Memory) -> Undo:
    """Undo of a cancellation of which the kubelet may not have been told, or that cost it its lock: restart it."""
    restart = systemctl("restart", memory["unit"])
    wanted = (Check("node-ready", True), *((Check("kubelet-inhibitor", True),) if memory["lock"] else ()))
    return Undo(tuple(UndoStep(restart, unless=check, patience=_TOLD) for check in wanted), wanted)

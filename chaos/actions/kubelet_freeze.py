"""The kubelet's process stopped by a signal: systemd believes that it runs, and it does nothing."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import capture_kubelet_state, timer_unit
from chaos.model.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Target,
    Undo,
    UndoKind,
    UndoState,
    UndoStep,
)
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import holds_until
from chaos.model.experiment import Model


class Params(Model):
    """None."""


def _is_stopped(process: Any) -> bool:
    return isinstance(process, dict) and bool(process.get("stopped"))


def _signal(name: str, unit: str) -> tuple[str, ...]:
    return ("systemctl", "kill", "--kill-who=main", f"--signal={name}", unit)


class KubeletFreeze(Action):
    """SIGSTOP to the main process of the kubelet's unit, SIGCONT afterwards; containers run on.

    A unit with a watchdog (kubelet 1.32 and later can have one) is killed by systemd and started again.
    """

    name = "kubelet-freeze"
    summary = "freeze the kubelet's process (SIGSTOP), so that it is there and silent"
    example = "{name: freeze, action: kubelet-freeze, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (holds_until("kubelet-process", _is_stopped, "the kernel shows the kubelet as stopped"),)
    proof_facts = ("kubelet-process", "kubelet-state")

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        return capture_kubelet_state(target, "the kubelet's main process is what is frozen") | {
            "seconds": target.max_duration
        }

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        return (HostCommand(_signal("SIGSTOP", memory["unit"])),)

    def failsafe_timer(self, memory: UndoState) -> FailsafeTimer:
        return FailsafeTimer(timer_unit(memory), memory["seconds"], _signal("SIGCONT", memory["unit"]))

    def undo(self, memory: UndoState) -> Undo:
        thawed = FactCheck("kubelet-frozen", False)
        thaw = UndoStep(HostCommand(_signal("SIGCONT", memory["unit"])), unless=thawed)
        return Undo((thaw,), (thawed, FactCheck("node-ready", True)), disarm=timer_unit(memory))


ACTION = KubeletFreeze()

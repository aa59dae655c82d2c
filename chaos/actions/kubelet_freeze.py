"""The kubelet's process stopped by a signal: systemd believes that it runs, and it does nothing."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import kubelet_memory, timer
from chaos.model.action import (
    Action,
    Check,
    Memory,
    SelfHeal,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import lasting
from chaos.model.experiment import Model


class Params(Model):
    """None."""


def _stopped(process: Any) -> bool:
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
    proofs = (lasting("kubelet-process", _stopped, "the kernel shows the kubelet as stopped"),)
    probes = ("kubelet-process", "kubelet-state")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return kubelet_memory(target, "the kubelet's main process is what is frozen") | {"seconds": target.max_duration}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (HostCommand(_signal("SIGSTOP", memory["unit"])),)

    def self_heal(self, memory: Memory) -> SelfHeal:
        return SelfHeal(timer(memory), memory["seconds"], _signal("SIGCONT", memory["unit"]))

    def undo(self, memory: Memory) -> Undo:
        thawed = Check("kubelet-frozen", False)
        thaw = UndoStep(HostCommand(_signal("SIGCONT", memory["unit"])), unless=thawed)
        return Undo((thaw,), (thawed, Check("node-ready", True)), disarm=timer(memory))


ACTION = KubeletFreeze()

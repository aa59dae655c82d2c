"""The kubelet's process stopped by a signal: systemd believes that it runs, and it does nothing."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import kubelet_memory, timer
from chaos.model.action import (
    Action,
    Check,
    Finding,
    Memory,
    Proof,
    SelfHeal,
    Shown,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
)
from chaos.model.command import Command, HostCommand
from chaos.model.evidence import not_shown, readings_after
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline


class Params(Model):
    """None."""


def _frozen(timeline: Timeline, step: StepRun) -> Finding:
    """The kernel shows the process as stopped."""
    readings = readings_after(timeline, step, "kubelet-process")
    for reading in readings:
        if isinstance(reading.value, dict) and reading.value.get("stopped"):
            return Finding(Shown.PROVEN, f"the kernel of {step.node} shows the kubelet as stopped", (reading.seq,))
    if readings:
        return Finding(Shown.DISPROVEN, f"the kubelet of {step.node} was not stopped", (readings[-1].seq,))
    return not_shown(f"nobody looked at the kubelet's process on {step.node}")


def _signal(name: str, unit: str) -> tuple[str, ...]:
    return ("systemctl", "kill", "--kill-who=main", f"--signal={name}", unit)


class KubeletFreeze(Action):
    """SIGSTOP to the main process of the kubelet's unit, SIGCONT afterwards; containers run on."""

    name = "kubelet-freeze"
    summary = "freeze the kubelet's process (SIGSTOP), so that it is there and silent"
    example = "{name: freeze, action: kubelet-freeze, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (Proof("process-stopped", _frozen),)
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

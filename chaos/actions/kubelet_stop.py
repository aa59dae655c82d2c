"""The kubelet stopped by systemd: containers run on, the Lease is not renewed any more."""

from __future__ import annotations

from typing import Any

from chaos.actions._service import kubelet_memory, kubelet_runs, start_again, systemctl, timer
from chaos.model.action import Action, Memory, SelfHeal, Target, Undo, UndoKind
from chaos.model.command import Command
from chaos.model.evidence import lasting
from chaos.model.experiment import Model


class Params(Model):
    """None."""


class KubeletStop(Action):
    """``systemctl stop`` of whichever unit runs the kubelet; on k3s and rke2 servers that is the control plane too."""

    name = "kubelet-stop"
    summary = "stop the kubelet; its containers run on, nobody reports of them"
    example = "{name: stop, action: kubelet-stop, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    proofs = (lasting("kubelet-state", lambda v: v in ("inactive", "failed"), "systemd does not run the kubelet"),)
    probes = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        return kubelet_memory(target, "the kubelet's unit is what is stopped") | {"seconds": target.max_duration}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        return (systemctl("stop", memory["unit"]),)

    def self_heal(self, memory: Memory) -> SelfHeal:
        return start_again(memory, memory["seconds"])

    def undo(self, memory: Memory) -> Undo:
        return kubelet_runs(memory, disarm=timer(memory))


ACTION = KubeletStop()

"""The kubelet's process stopped by a signal: its unit stays active, and the kubelet does nothing."""

from __future__ import annotations

from typing import Any

from chaos.core.action import (
    Action,
    FactCheck,
    FailsafeTimer,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_unit,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand
from chaos.core.evidence import holds_until
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import KubeletState, capture_kubelet_state


def _is_stopped(process: Any) -> bool:
    return isinstance(process, dict) and bool(process.get("stopped"))


def _signal(name: str, unit: str) -> tuple[str, ...]:
    return ("systemctl", "kill", "--kill-who=main", f"--signal={name}", unit)


class KubeletFreeze(Action[NoParams, KubeletState]):
    """SIGSTOP to the main process of the kubelet's unit, SIGCONT afterwards; containers keep running.

    systemd kills and restarts a unit with a watchdog (kubelet 1.32 and later can have one).
    """

    name = "kubelet-freeze"
    summary = "freeze the kubelet's process (SIGSTOP): it exists and does nothing"
    example = "{name: freeze, action: kubelet-freeze, target: victim}"
    params = NoParams
    state = KubeletState
    no_windows_reason = "Windows has no signal that stops a process"
    undo_kind = UndoKind.RESTORES
    stops_exec = True
    proofs = (holds_until("kubelet-process", _is_stopped, "the kernel shows the kubelet as stopped"),)
    proof_facts = ("kubelet-process", "kubelet-state")

    def prepare(self, target: Target, params: NoParams) -> KubeletState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step freezes the kubelet's main process")

    def inject(self, state: KubeletState) -> tuple[Command, ...]:
        return (HostCommand(_signal("SIGSTOP", state.unit)),)

    def failsafe_timer(self, state: KubeletState) -> FailsafeTimer:
        return FailsafeTimer(failsafe_unit(state.tag), state.seconds, _signal("SIGCONT", state.unit))

    def undo(self, state: KubeletState) -> Undo:
        thawed = FactCheck("kubelet-stopped-state", False)
        thaw = UndoStep(HostCommand(_signal("SIGCONT", state.unit)), unless=thawed)
        return Undo((thaw,), (thawed, FactCheck(PseudoFact.NODE_READY, True)), disarm=failsafe_unit(state.tag))


ACTION = KubeletFreeze()

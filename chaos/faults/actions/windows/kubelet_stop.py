"""The kubelet's service stopped: containers keep running, the Lease is no longer renewed."""

from __future__ import annotations

from chaos.core.action import Action, FailsafeTimer, Target, Undo, UndoKind, failsafe_unit
from chaos.core.command import Command
from chaos.core.evidence import holds_until
from chaos.faults.actions._params import NoParams
from chaos.faults.actions.windows._services import (
    ServiceState,
    capture_kubelet_state,
    restore_kubelet,
    start_failsafe,
    stop_service,
)


class KubeletStop(Action[NoParams, ServiceState]):
    """``sc.exe stop kubelet``. A stop is no shutdown: the kubelet ends without touching its pods."""

    name = "kubelet-stop"
    summary = "stop the kubelet's service; its containers keep running unreported"
    example = "{name: stop, action: kubelet-stop, target: victim}"
    params = NoParams
    state = ServiceState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    proofs = (holds_until("kubelet-state", lambda v: v == "inactive", "the kubelet's service is stopped"),)
    proof_facts = ("kubelet-state",)

    def prepare(self, target: Target, params: NoParams) -> ServiceState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step stops the kubelet's service")

    def inject(self, state: ServiceState) -> tuple[Command, ...]:
        return (stop_service(state.service),)

    def failsafe_timer(self, state: ServiceState) -> FailsafeTimer:
        return start_failsafe(state.tag, state.seconds, state.service)

    def undo(self, state: ServiceState) -> Undo:
        return restore_kubelet(state, disarm=failsafe_unit(state.tag))


ACTION = KubeletStop()

"""The kubelet's service started: the undo of kubelet-stop as a separate step."""

from __future__ import annotations

from chaos.core.action import Action, Target, Undo, UndoKind
from chaos.core.command import Command
from chaos.core.evidence import fact_is
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import ACTIVE
from chaos.faults.actions.windows._services import ServiceState, capture_kubelet_state, start_service


class KubeletStart(Action[NoParams, ServiceState]):
    """``sc.exe start kubelet``, which starts its dependencies too; no effect on a kubelet that runs."""

    name = "kubelet-start"
    summary = "start the kubelet"
    example = "{name: start, action: kubelet-start, target: victim, after: stop + 60s}"
    params = NoParams
    state = ServiceState
    systems = frozenset({"windows"})
    undo_kind = UndoKind.RESTORES
    keeps_pods_running = True
    proofs = (fact_is("kubelet-state", lambda v: v == ACTIVE, "the kubelet's service runs"),)
    proof_facts = ("kubelet-state", "kubelet-process")

    def prepare(self, target: Target, params: NoParams) -> ServiceState:  # noqa: ARG002 - no parameters
        return capture_kubelet_state(target, "the step starts the kubelet's service")

    def inject(self, state: ServiceState) -> tuple[Command, ...]:
        return (start_service(state.service),)

    def undo(self, state: ServiceState) -> Undo:  # noqa: ARG002 - a running kubelet needs no undo
        return Undo()


ACTION = KubeletStart()

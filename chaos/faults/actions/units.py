"""Units of kubelet and container runtime: stopped, started, restarted, frozen. Containers keep running."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import (
    exit_code_zero,
    fact_is,
    holds_until,
    is_number,
    last_reading_before,
    no_proof,
    readings_after,
    returned_entries,
    same_boot,
)
from chaos.core.machine_evidence import power_lost
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import NoParams
from chaos.faults.actions._service import (
    ACTIVE,
    KubeletState,
    ServiceState,
    capture_kubelet_state,
    restore_kubelet,
    systemctl,
)
from chaos.faults.readings.units import SUPERVISING_UNITS

_GRACE_SECONDS = 5.0
_STOPPED = ("inactive", "failed")

KUBELET_STOP = Action(
    name="kubelet-stop",
    summary="stop the kubelet; its containers keep running unreported",
    description="""
    Runs ``systemctl stop`` for the unit that runs the kubelet. On servers of k3s and rke2, and on controllers of k0s,
    the unit includes the control plane.
    """,
    example="{name: stop, action: kubelet-stop, target: victim}",
    params=NoParams,
    state=KubeletState,
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,
    proofs=(holds_until("kubelet-state", lambda v: v in _STOPPED, "systemd does not run the kubelet"),),
    needs=Needs(proof_facts=("kubelet-state", "kubelet-process")),
    prepare=lambda target, _: capture_kubelet_state(target, "the step stops the kubelet's unit"),
    program=lambda state: Program(
        (systemctl("stop", state.unit),),
        restore_kubelet(state),
        failsafe=failsafe_timer(state, "systemctl", "start", state.unit),
    ),
)
KUBELET_START = Action(
    name="kubelet-start",
    summary="start the kubelet",
    description="Runs ``systemctl start``. It has no effect on a running kubelet.",
    example="{name: start, action: kubelet-start, target: victim, after: stop + 60s}",
    params=NoParams,
    state=KubeletState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(fact_is("kubelet-state", lambda v: v == ACTIVE, "systemd runs the kubelet"),),
    needs=Needs(proof_facts=("kubelet-state", "kubelet-process")),
    prepare=lambda target, _: capture_kubelet_state(target, "the step starts the kubelet's unit"),
    program=lambda state: Program((systemctl("start", state.unit),)),  # a running kubelet needs no undo
)


def _stop_runtime(state: ServiceState) -> Program:
    active = FactCheck("runtime-state", ACTIVE)
    return Program(
        (systemctl("stop", state.unit),),
        Undo((UndoStep(systemctl("start", state.unit), unless=active),), (active, NODE_READY)),
        failsafe=failsafe_timer(state, "systemctl", "start", state.unit),
    )


def _prepare_runtime(target: Target, _: NoParams) -> ServiceState:
    unit = target.require_fact("runtime-unit", "the step stops the container runtime's unit")
    return ServiceState(unit, target.tag, target.max_duration)


RUNTIME_STOP = Action(
    name="runtime-stop",
    summary="stop the container runtime; containers keep running",
    description="""
    Ready becomes False 30 s later ("container runtime is down"). Pods can neither start nor terminate.
    """,
    example="{name: stop, action: runtime-stop, target: victim}",
    params=NoParams,
    state=ServiceState,
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,
    proofs=(holds_until("runtime-state", lambda v: v in _STOPPED, "systemd does not run the runtime"),),
    needs=Needs(("runtime-unit",), ("runtime-state",)),
    prepare=_prepare_runtime,
    program=_stop_runtime,
)


def _is_stopped(process: Any) -> bool:
    return isinstance(process, dict) and bool(process.get("stopped"))


def _signal(name: str, unit: str) -> tuple[str, ...]:
    return ("systemctl", "kill", "--kill-who=main", f"--signal={name}", unit)


def _prepare_freeze(target: Target, _: NoParams) -> KubeletState:
    """Raises Unsupported if the signal would stop a process other than the kubelet."""
    state = capture_kubelet_state(target, "the step freezes the kubelet's main process")
    if state.unit in SUPERVISING_UNITS:
        raise Unsupported(
            f"{target.node}: the main process of {state.unit} is not the kubelet, which would run on",
            hint="use kubelet-stop, or kubelet-slow",
        )
    return state


def _freeze(state: KubeletState) -> Program:
    thawed = FactCheck("kubelet-stopped-state", False)
    thaw = _signal("SIGCONT", state.unit)
    return Program(
        (HostCommand(_signal("SIGSTOP", state.unit)),),
        Undo((UndoStep(HostCommand(thaw), unless=thawed),), (thawed, NODE_READY)),
        failsafe=failsafe_timer(state, *thaw),
    )


KUBELET_FREEZE = Action(
    name="kubelet-freeze",
    summary="freeze the kubelet's process (SIGSTOP): it exists and does nothing",
    description="""
    Sends SIGSTOP to the main process of the kubelet's unit, and SIGCONT afterwards. Containers keep running. systemd
    kills and restarts a unit with a watchdog (kubelet 1.32 and later can have one). The action is refused on rke2 and
    k0s, where the main process of the unit only starts the kubelet.
    """,
    example="{name: freeze, action: kubelet-freeze, target: victim}",
    params=NoParams,
    state=KubeletState,
    no_windows_reason="Windows has no signal that stops a process",
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,
    proofs=(holds_until("kubelet-process", _is_stopped, "the kernel shows the kubelet as stopped"),),
    needs=Needs(proof_facts=("kubelet-process", "kubelet-state")),
    prepare=_prepare_freeze,
    program=_freeze,
)


def _check_process_replaced(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a process ID that differs from the one before the step."""
    before = last_reading_before(timeline, step, "kubelet-process")
    old = before.value.get("pid") if before and isinstance(before.value, dict) else None
    for reading in readings_after(timeline, step, "kubelet-process"):
        new = reading.value.get("pid") if isinstance(reading.value, dict) else None
        if before and old and new and new != old and same_boot(timeline, step, reading):
            because = f"the kubelet of {step.node} is another process ({old}, then {new})"
            return ProofResult(ProofStatus.PROVEN, because, (before.seq, reading.seq))
    return no_proof(f"no new process of the kubelet of {step.node} was seen")


def _check_canceled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by systemd, which canceled the restart when the shutdown continued; weakly if no process was read then.

    The restart stops the kubelet first, that releases the lock, and logind's shutdown takes the place of the job.
    """
    before = last_reading_before(timeline, step, "kubelet-process")
    for entry, record in returned_entries(timeline, step):
        if record.delivery != Delivery.ANSWERED or not str(record.evidence.get("stderr", "")).endswith(" canceled."):
            continue
        because = "systemd canceled the restart because of the shutdown: the kubelet was stopped and not started"
        later = [r for r in readings_after(timeline, step, "kubelet-process") if r.t > entry.t]
        if before is not None and any(reading.value == before.value for reading in later):
            return no_proof(f"systemd canceled the restart, and the kubelet of {step.node} still ran afterwards")
        gone = next((reading for reading in later if reading.value == {}), None)
        return ProofResult(ProofStatus.PROVEN, because, (entry.seq, *((gone.seq,) if gone else ())), weak=gone is None)
    return no_proof("systemd did not cancel the restart")


def _check_accepted(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proof for steps during a shutdown: the machine may be off before its processes can be read again."""
    before = last_reading_before(timeline, step, "kubelet-process")
    for reading in readings_after(timeline, step, "kubelet-process"):
        same = before is not None and reading.value == before.value and reading.t > (step.returned or step.begin)
        if same or reading.t > step.begin + _GRACE_SECONDS:
            return no_proof(f"the kubelet of {step.node} was read afterwards")
    return _check_started(timeline, step) or exit_code_zero(timeline, step)


def _check_started(timeline: Timeline, step: StepRun) -> ProofResult | None:
    """Proven by a host that began the command and went down without a response: without the lock nothing delays it."""
    down = power_lost(timeline, step)
    for entry, record in returned_entries(timeline, step) if down.status is ProofStatus.PROVEN else ():
        if record.delivery == Delivery.LOST and is_number(record.evidence.get("began")):
            because = f"the host began it and stopped responding; {down.because}"
            return ProofResult(ProofStatus.PROVEN, because, (entry.seq, *down.evidence), weak=True)
    return None


def _restart(state: KubeletState) -> Program:
    """Restart a unit. systemctl fails with that text when a shutdown replaces the unit's job."""
    canceled = f"Job for {state.unit} canceled."
    restart = structs.replace(systemctl("restart", state.unit), undecided=(canceled,))
    return Program((restart,), restore_kubelet(state))


PROCESS_REPLACED = Proof("another-process", _check_process_replaced)
KUBELET_RESTART = Action(
    name="kubelet-restart",
    summary="restart the kubelet",
    description="""
    During a graceful shutdown, the restart releases the lock, and the machine goes down at once (facts 1.7).
    """,
    example="{name: restart, action: kubelet-restart, target: victim}",
    params=NoParams,
    state=KubeletState,
    undo_kind=UndoKind.SELF_RESTORING,
    keeps_pods_running=True,
    proofs=(
        PROCESS_REPLACED,
        Proof("canceled-by-shutdown", _check_canceled),
        Proof("accepted", _check_accepted, weak=True),
    ),
    needs=Needs(proof_facts=("kubelet-state", "kubelet-process", "inhibitor-kubelet")),
    prepare=lambda target, _: capture_kubelet_state(target, "the step restarts the kubelet's unit"),
    program=_restart,
)

"""The kubelet limited to a small share of one CPU: it runs, but does everything late."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from pydantic import Field

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
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until, readings_after, within_duration
from chaos.core.field_types import Model
from chaos.core.node_mark import NodeUnit, Tag
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import Ends, timer_seconds

_QUOTA, _CPU = "kubelet-cpu-quota", "kubelet-cpu"
_DEFAULT = 5.0
# A reload makes systemd apply the remaining files to running units (core/unit-serialize.c, unit_deserialize_state
# invalidates what is realized); `set-property CPUQuota=` would leave a file that overrides the unit's own quota.
_RESTORE_SCRIPT = 'rm --force "$1" && systemctl daemon-reload'


class Params(Model):
    """The CPU quota and the duration."""

    percent: float = Field(
        _DEFAULT, ge=0.1, le=100, description="The share of one CPU that the kubelet may use, in percent."
    )
    duration: Ends = None


class SlowState(Struct, frozen=True):
    """The kubelet's unit, its quota before, in percent of a CPU (None: no quota), and the failsafe timer."""

    unit: NodeUnit
    percent: float
    former: float | None
    tag: Tag
    seconds: float


def _quota(percent: float | None, *, runtime: bool) -> FactCheck:
    return FactCheck(_QUOTA, {"percent": percent, "runtime": runtime, "stale": False})


def _restore_argv(unit: str) -> tuple[str, ...]:
    """The command that removes the file written by ``set-property --runtime``."""
    file = f"/run/systemd/system.control/{unit}.d/50-CPUQuota.conf"
    return ("sh", "-c", _RESTORE_SCRIPT, "nodefall", file)


def _check_throttled(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by time for which the kernel made the kubelet wait while the quota was in force."""
    step = within_duration(step)
    wanted = _quota(float(step.params.get("percent", _DEFAULT)), runtime=True).value
    in_force = holds_until(_QUOTA, lambda value: value == wanted, "systemd limits the kubelet").check(timeline, step)
    if in_force.status is not ProofStatus.PROVEN:
        return in_force
    first: Any = None
    for reading in readings_after(timeline, step, _CPU):
        waited = reading.value.get("throttled") if isinstance(reading.value, dict) else None
        if waited is None or reading.t < (step.returned or step.begin):
            continue
        if first is not None and waited > first.value["throttled"]:
            more, span = waited - first.value["throttled"], reading.t - first.t
            because = f"the kubelet of {step.node} waited {more:.1f} s for its CPU quota within {span:.1f} s"
            return ProofResult(ProofStatus.PROVEN, because, (*in_force.evidence, first.seq, reading.seq))
        first = first or reading
    because = f"the kubelet of {step.node} was not seen to wait for its CPU quota"
    return ProofResult(ProofStatus.UNPROVEN, because, in_force.evidence)


def _prepare(target: Target, params: Params) -> SlowState:
    unit = target.require_fact("kubelet-unit", "the step limits the kubelet's unit")
    if target.require_fact("cgroup-version", "the proof reads cpu.stat") != 2:
        raise Unsupported(
            f"{target.node} has cgroup v1, on which the wait for the quota is not read",
            hint="use a host with cgroup v2",
        )
    quota = target.require_fact(_QUOTA, "undo restores it")
    if quota["runtime"]:
        raise Unsupported(
            f"{target.node}: {unit} has a CPU quota that was set at run time, which undo could not restore",
            hint="find the run with `nodefall undo --list` and undo it; set other quotas in the unit's files",
        )
    if quota["stale"]:
        raise Unsupported(
            f"{target.node}: files of {unit} have changed, and undo would make systemd load them",
            hint="run `systemctl daemon-reload` there",
        )
    if quota["percent"] is not None and quota["percent"] <= params.percent:
        raise Unsupported(
            f"{target.node}: {unit} is limited to {quota['percent']:g} % of a CPU already",
            hint="choose a smaller percent",
        )
    return SlowState(unit, params.percent, quota["percent"], target.tag, timer_seconds(target, params.duration))


def _program(state: SlowState) -> Program:
    """Undo restores the former quota, from the unit's files; a kubelet that was late becomes Ready again."""
    former, restore = _quota(state.former, runtime=False), _restore_argv(state.unit)
    limit = HostCommand(("systemctl", "set-property", "--runtime", state.unit, f"CPUQuota={state.percent:g}%"))
    return Program(
        (limit,),
        Undo((UndoStep(HostCommand(restore), unless=former),), (former, NODE_READY)),
        preconditions=(former,),
        failsafe=failsafe_timer(state, *restore),
    )


ACTION = Action(
    name="kubelet-slow",
    summary="limit the kubelet to a small share of a CPU, so that it works late",
    description="""
    Sets CPUQuota of the unit that runs the kubelet with ``systemctl set-property --runtime``. Only the cgroup of that
    unit is limited. Undo removes the file that systemd wrote and reloads systemd, so that a quota in the unit's own
    files applies again. On k3s and RKE2 the unit includes the container runtime, and on servers also the control
    plane.
    """,
    example="{name: slow, action: kubelet-slow, target: victim, with: {percent: 1}}",
    params=Params,
    state=SlowState,
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,  # commands in pods go through the kubelet, which at a small share does not answer in time
    keeps_pods_running=True,
    proofs=(Proof("throttled", _check_throttled),),
    needs=Needs(("cgroup-version", _QUOTA), (_QUOTA, _CPU)),
    prepare=_prepare,
    program=_program,
)

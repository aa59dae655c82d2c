"""The host's CPUs kept busy: everything else on them is slower, and nothing is stopped."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chaos.core.action import (
    Action,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    UndoKind,
)
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until, no_proof, readings_after, within_duration
from chaos.core.timeline import Fact, Timeline
from chaos.faults.actions._filler import FillerState, require_own_kernel, run_filler
from chaos.faults.actions._params import DurationParams, timer_seconds

_FILLER, _TIME = "cpu-filler", "cpu-time"
_ENOUGH = 0.9  # of the asked share, that the CPUs must be busy
_OURS = 0.1  # of the asked share, that nodefall's unit must have had
_MIN_SPAN = 1.0  # seconds between two measurements
_SCRIPT = """i=0
while [ "$i" -lt "$1" ]; do
  while :; do :; done &
  i=$((i + 1))
done
wait"""


class Params(DurationParams):
    """The load and the duration."""

    percent: float = Field(100.0, ge=1, le=100, description="The share of one CPU that each worker uses, in percent.")
    workers: int | None = Field(
        None, ge=1, le=1024, description="How many busy loops run, each on one CPU. By default, one for each CPU."
    )
    weight: int = Field(
        100, ge=1, le=1000, description="The CPUWeight of the unit in system.slice. sshd and the kubelet have 100."
    )


class CpuState(FillerState, frozen=True):
    """The idle CPU across all CPUs and each worker's share, in percent of one CPU; ``weight``: systemd's CPUWeight."""

    workers: int
    percent: float
    weight: int


def _share(value: dict[str, float], params: dict[str, Any]) -> float:
    """The requested share of all CPUs, up to 1."""
    workers = params.get("workers") or value["cpus"]
    return float(min(1.0, workers * params.get("percent", 100.0) / 100 / value["cpus"]))


def _busy(first: Fact, last: Fact) -> tuple[float, float]:
    """Shares of all CPU time between two readings: busy, and used by nodefall's unit.

    The kernel counts busy time in ticks, which virtual machines may lose, and the unit's time by its clock.
    """
    busy, idle, filler = (float(last.value[key] - first.value[key]) for key in ("busy", "idle", "filler"))
    counted, passed = busy + idle, (last.t - first.t) * first.value["cpus"]
    return busy / counted if counted > 0 else 0.0, filler / passed


def _check_busy(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by CPU time: the CPUs were as busy as requested, partly with nodefall's unit, while that was active."""
    step = within_duration(step)
    active = holds_until(_FILLER, lambda value: value == "active", "the unit that uses CPUs runs").check(timeline, step)
    if active.status is not ProofStatus.PROVEN:
        return active
    readings = [r for r in readings_after(timeline, step, _TIME) if isinstance(r.value, dict)]
    first = next((r for r in readings if r.t >= (step.returned or step.begin)), None)
    if first is None or readings[-1].t < first.t + _MIN_SPAN:
        return no_proof(f"the CPU time of {step.node} was not measured after the step")
    last = readings[-1]
    wanted = _share(first.value, dict(step.params))
    busy, ours = _busy(first, last)
    text = f"the CPUs of {step.node} were busy for {busy:.0%} of {last.t - first.t:.1f} s{_before(timeline, step)}"
    because = f"{text}, {ours:.0%} with the step's load"
    if busy < _ENOUGH * wanted or ours < _OURS * wanted:
        return no_proof(f"{because}: less than the {wanted:.0%} that were asked for")
    return ProofResult(ProofStatus.PROVEN, because, (*active.evidence, first.seq, last.seq))


def _before(timeline: Timeline, step: StepRun) -> str:
    """How busy the CPUs were before the step, in words; "" if that was not measured."""
    earlier = [r for r in timeline.readings(step.node, _TIME) if r.t <= step.begin and isinstance(r.value, dict)]
    if len(earlier) < 2 or earlier[-1].t < earlier[0].t + _MIN_SPAN:
        return ""
    return f", before it for {_busy(earlier[0], earlier[-1])[0]:.0%}"


def _prepare(target: Target, params: Params) -> CpuState:
    require_own_kernel(target)
    if target.require_fact("cgroup-version", "the proof reads cpu.stat") != 2:
        raise Unsupported(
            f"{target.node} has cgroup v1, where the unit's CPU time is not read", hint="use a host with cgroup v2"
        )
    cpus = int(target.require_fact(_TIME, "there is one worker for each CPU")["cpus"])
    workers = params.workers or cpus
    remaining = max(0, round(cpus * 100 - workers * params.percent))
    seconds = timer_seconds(target, params.duration)
    return CpuState(seconds, target.tag, remaining, workers, params.percent, params.weight)


def _program(state: CpuState) -> Program:
    quota = f"CPUQuota={state.workers * state.percent:g}%"
    limits = (quota, f"CPUWeight={state.weight}", f"TasksMax={state.workers + 8}")
    return run_filler(state, "cpu", _SCRIPT, (str(state.workers),), limits)


ACTION = Action(
    name="cpu-stress",
    summary="keep the host's CPUs busy",
    description="""
    A unit of systemd runs an endless loop for each worker. Nothing needs to be installed. The kernel divides CPU time
    by weight (CPUWeight). The unit is in system.slice, beside sshd, the container runtime and the kubelet, and
    system.slice competes with the slice of the pods. Programs that need little CPU still get it, while pods get less
    than before.
    """,
    example="{name: stress, action: cpu-stress, target: victim, with: {duration: 5m}}",
    params=Params,
    state=CpuState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(Proof("busy", _check_busy),),
    needs=Needs(("shared-kernel", "cgroup-version", _TIME, _FILLER), (_TIME, _FILLER)),
    prepare=_prepare,
    program=_program,
)

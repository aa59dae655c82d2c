"""Power on through the power control: restores a machine that is off."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from chaos.core.action import (
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    UndoKind,
)
from chaos.core.api_fact import PseudoFact
from chaos.core.command import PowerCommand, PowerVerb
from chaos.core.evidence import SAME_BOOT_SECONDS, all_readings, boot_changed, is_number, no_proof, readings_after
from chaos.core.machine_evidence import off_stretches, signs_of_life
from chaos.core.timeline import Fact, Timeline
from chaos.faults.actions._machine import NO_SHUTDOWN_IN_PROGRESS, can_read_power_state, require_power_control
from chaos.faults.actions._params import NoParams

_BOOT_SECONDS = 120.0  # in which a machine that boots shows a sign of life


def _check_machine_on(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven when the power control reports on after off, or PID 1 is younger than the step."""
    after = readings_after(timeline, step, PseudoFact.MACHINE)
    before = [r for r in all_readings(timeline, step.node, PseudoFact.MACHINE) if r.t <= step.begin][-1:]
    off = next((r for r in reversed([*before, *after]) if r.value == "off"), None)
    if off and (disproven := _was_not_off(timeline, step, off)):
        return disproven
    return _compare_readings(timeline, step, before, after, off)


def _was_not_off(timeline: Timeline, step: StepRun, off: Fact) -> ProofResult | None:
    """Disproven if the power control reported off while the machine was running."""
    for stretch in off_stretches(timeline, step.node):
        if stretch.disproof and off in stretch.readings:
            sign = stretch.disproof
            because = f"the power control said that {step.node} was off, but {sign.what}: it was on before the step"
            return ProofResult(ProofStatus.DISPROVEN, because, (off.seq, sign.seq))
    return None


def _said_on(timeline: Timeline, step: StepRun, off: Fact, on: Fact) -> ProofResult:
    """Proven by the power control, unless the machine shows no sign of life for longer than a boot takes."""
    silence = timeline.end - step.begin
    has_shown = any(sign.hi > off.t for sign in signs_of_life(timeline, step.node))
    if silence > _BOOT_SECONDS and not has_shown:
        return no_proof(f"the power control said that {step.node} is on, and nothing shows it {silence:.0f} s later")
    because = f"{step.node} was off, and on {on.t - step.begin:.1f} s after the step"
    return ProofResult(ProofStatus.PROVEN, because, (off.seq, on.seq))


def _compare_readings(
    timeline: Timeline, step: StepRun, before: Sequence[Fact], after: Sequence[Fact], off: Fact | None
) -> ProofResult:
    last = after[-1] if after else None
    if last and off and last.value == "on":
        return _said_on(timeline, step, off, last)
    for start in readings_after(timeline, step, "pid1-start"):
        if is_number(start.value) and start.value >= step.begin - SAME_BOOT_SECONDS:
            return ProofResult(ProofStatus.PROVEN, f"PID 1 of {step.node} was started after the step", (start.seq,))
    if last is None:
        return no_proof(f"no reading showed that {step.node} is on")
    if last.value == "off":
        because = f"{step.node} was still off {last.t - step.begin:.1f} s after the step"
        return ProofResult(ProofStatus.DISPROVEN, because, (last.seq,))
    if before:
        because = f"{step.node} was on before the step, and was not seen off"
        return ProofResult(ProofStatus.DISPROVEN, because, (before[0].seq, last.seq))
    return no_proof(
        f"{step.node} was on {last.t - step.begin:.1f} s after the step, but no reading shows it off before"
    )


def _check_boot_id(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a new boot ID, where PID 1 is not read, as on Windows."""
    if timeline.readings(step.node, "pid1-start"):
        return no_proof("the start of PID 1 is read")
    return boot_changed(timeline, step)


class PowerOnState(Struct, frozen=True):
    """Whether the power control can read the power state."""

    can_read_power: bool = True  # not in states of 0.1.0


def _prepare(target: Target, _: NoParams) -> PowerOnState:
    require_power_control(target, "has no power control to power it on with")
    return PowerOnState(can_read_power_state(target))


def _program(state: PowerOnState) -> Program:
    down_or_up = (FactCheck(PseudoFact.MACHINE, "off"), NO_SHUTDOWN_IN_PROGRESS)
    return Program((PowerCommand(PowerVerb.ON),), awaits=down_or_up if state.can_read_power else ())


ACTION = Action(
    name="power-on",
    summary="power the machine on with its power control",
    description="""
    Sends ``on`` to the power control and no command to the host, which cannot respond. A machine that is still
    shutting down ignores ``on``. Therefore the step waits until the machine is off, or up with no shutdown in
    progress.
    """,
    example="{name: power-on, action: power-on, target: victim, after: power-off + 90s}",
    params=NoParams,
    state=PowerOnState,
    systems=frozenset({"linux", "windows"}),  # no command goes to the host
    undo_kind=UndoKind.RESTORES,
    powers_on=True,
    keeps_pods_running=True,
    proofs=(Proof("machine-on", _check_machine_on), Proof("boot-identity", _check_boot_id)),
    needs=Needs(proof_facts=(PseudoFact.MACHINE, "pid1-start", "boot-id", "inhibitor-locks")),
    prepare=_prepare,
    program=_program,
)

"""Parts shared by actions that take a machine down: how it is powered on again, and when it is up.

One rule holds for all of them: before the fault, it is known what brings the machine back. That is a power control
(:func:`require_power_control`) or the alarm of its clock for a machine that is off, a separate kernel or a restart
policy for a reboot (:func:`require_reboot`), kernel.panic for a crash, and for a scheduled shutdown the timer that
cancels it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from chaos.core.action import NODE_READY, FactCheck, Target, Undo, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, PowerCapability, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.faults.readings.logind import NOT_PREPARING

# A machine is up when its logind reports no shutdown: one that is on and Ready may still be going down.
NO_SHUTDOWN_IN_PROGRESS = FactCheck("preparing-for-shutdown", NOT_PREPARING)
# Ready alone is no evidence: it stays True until the node lifecycle controller misses the kubelet's heartbeat.
_EXPECTED_VALUES = {
    NO_SHUTDOWN_IN_PROGRESS.fact: NOT_PREPARING,
    "kubelet-state": "active",
    PseudoFact.BOOT_POSTED: True,
}
KUBELET_REPORTING_FACTS = tuple(_EXPECTED_VALUES)
POWER_ON = UndoStep(PowerCommand(PowerVerb.ON), unless=FactCheck(PseudoFact.MACHINE, "on"))
# Where the power control cannot read the state, only the host shows that it is on: `on` is sent until the host answers.
_POWER_ON_WITHOUT_STATE = UndoStep(PowerCommand(PowerVerb.ON), unless=NO_SHUTDOWN_IN_PROGRESS, max_attempts=10)
_ABILITIES = {PowerCapability.SOFT_OFF: "ask it to shut down"}
_ON_CHECKS = (FactCheck(PseudoFact.MACHINE, "on"),)


# As docker writes it, "" where there is none; undo from another machine sends what a ConfigMap says.
_Policy = Annotated[str, Meta(pattern=r"\A(?:no|always|unless-stopped|on-failure(?::[0-9]{1,6})?)?\Z")]


class MachineState(Struct, frozen=True):
    """A machine before its power is cut; the undo restores ``restart_policy`` and ``reporting_facts``."""

    can_read_power: bool
    restart_policy: _Policy
    reporting_facts: list[str]


class RebootState(Struct, frozen=True):
    """A machine before a reboot; the undo restores ``reporting_facts``."""

    can_read_power: bool
    reporting_facts: list[str]


def require_power_control(
    target: Target,
    why: str,
    hint: str = "give its host a power control in the inventory",
    needed: PowerCapability = PowerCapability.ON,
) -> None:
    """Raises Unsupported with ``why`` unless the target has a power control that supports ``needed``."""
    if not target.power:
        refuse_unusable_power_control(target)
        raise Unsupported(f"{target.node} {why}", hint=hint)
    if needed not in target.power_capabilities:
        cannot = _ABILITIES.get(needed, f"power it {needed}")
        raise Unsupported(f"{target.node} has a power control that cannot {cannot}", hint=hint)


def refuse_unusable_power_control(target: Target) -> None:
    """Raises Unsupported if there is a power control that cannot be used, for example because of a wrong password."""
    if target.power_error:
        raise Unsupported(target.power_error, hint=target.power_hint)


def require_reboot(target: Target) -> None:
    """Raises Unsupported unless the machine boots again by itself.

    A machine with its own kernel does. A container stops, and is started by its restart policy; where the policy is
    unknown, a power control must be able to power it on, and only the new boot proves the reboot.
    """
    if not target.require_fact("shared-kernel", "a container stops where a machine reboots"):
        return
    if target.restart_policy == "no":
        raise Unsupported(
            f"{target.node} is a container, which would stay off: its restart policy is no",
            hint=f"run `docker update --restart=on-failure:1 {target.node}`, or use poweroff and power-on",
        )
    if not target.restart_policy:
        require_power_control(target, "is a container, which may stay off")


def capture_reboot_state(target: Target) -> RebootState:
    """State of a machine that reboots. Raises Unsupported, as :func:`require_reboot` does."""
    require_reboot(target)
    return RebootState(can_read_power_state(target), kubelet_reporting_facts(target))


def restore_rebooted(state: RebootState | MachineState) -> Undo:
    """Power on a machine that stayed off; proven when its kubelet reports again."""
    return Undo((POWER_ON,) if state.can_read_power else (), kubelet_reporting_checks(state.reporting_facts))


def can_read_power_state(target: Target) -> bool:
    """Whether the target's power control can read the power state."""
    return bool(target.power) and PowerCapability.STATE in target.power_capabilities


def capture_power_state(target: Target) -> MachineState:
    """State of a machine that the action takes down for longer than a reboot."""
    return MachineState(can_read_power_state(target), target.restart_policy, kubelet_reporting_facts(target))


def disable_auto_restart(machine: MachineState) -> tuple[Command, ...]:
    """The command before the fault that disables a restart policy, with which a container would start again."""
    return (PowerCommand(PowerVerb.RESTART_POLICY, "no"),) if _has_auto_restart(machine) else ()


def power_on_again(machine: MachineState) -> Undo:
    """The undo: power on, then restore the restart policy; proven when the machine is up and its kubelet reports."""
    return Undo(power_on_steps(machine), is_up_checks(machine))


def power_on_steps(machine: MachineState) -> tuple[UndoStep, ...]:
    """The undo steps: power on, then restore the restart policy."""
    if not _has_auto_restart(machine):
        return (POWER_ON if machine.can_read_power else _POWER_ON_WITHOUT_STATE,)
    policy = UndoStep(
        PowerCommand(PowerVerb.RESTART_POLICY, machine.restart_policy), unless=_restart_policy_check(machine)
    )
    return (POWER_ON, policy)


def is_up_checks(machine: MachineState) -> tuple[FactCheck, ...]:
    """Proof that the machine is on, its kubelet reports, and its restart policy is restored."""
    policy = (_restart_policy_check(machine),) if _has_auto_restart(machine) else ()
    on = _ON_CHECKS if machine.can_read_power else ()
    return (*on, *kubelet_reporting_checks(machine.reporting_facts), *policy)


def kubelet_reporting_facts(target: Target) -> list[str]:
    """The KUBELET_REPORTING_FACTS that hold before the fault, for :func:`kubelet_reporting_checks`.

    A host without logind, as a stock node of kind, has no source for preparing-for-shutdown.
    """
    without_logind = NO_SHUTDOWN_IN_PROGRESS.fact in target.unknown
    always = [] if without_logind else [NO_SHUTDOWN_IN_PROGRESS.fact]
    return always + [
        fact for fact, expected in _EXPECTED_VALUES.items() if fact not in always and target.facts.get(fact) == expected
    ]


def kubelet_reporting_checks(facts: Sequence[str]) -> tuple[FactCheck, ...]:
    """Proof that a machine is up and its kubelet reports."""
    return (*(FactCheck(fact, _EXPECTED_VALUES[fact]) for fact in facts), NODE_READY)


def _has_auto_restart(machine: MachineState) -> bool:
    return machine.restart_policy not in ("", "no")


def _restart_policy_check(machine: MachineState) -> FactCheck:
    return FactCheck(PseudoFact.RESTART_POLICY, machine.restart_policy)

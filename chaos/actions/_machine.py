"""What the actions that take a machine down share: how it comes back, and when it is really up."""

from __future__ import annotations

from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import FactCheck, Target, UndoState, UndoStep
from chaos.model.command import Command, PowerCommand
from chaos.model.errors import Unsupported

# Up is a machine whose logind answers that it is not going down: on and Ready it may also be on its way.
NO_SHUTDOWN_IN_PROGRESS = FactCheck("preparing-for-shutdown", NOT_PREPARING)
# What tells a kubelet that reports from one that did before the machine went down: Ready stays until it is missed.
_EXPECTED_VALUES = {NO_SHUTDOWN_IN_PROGRESS.fact: NOT_PREPARING, "kubelet-state": "active", "boot-posted": True}
KUBELET_REPORTING_FACTS = tuple(_EXPECTED_VALUES)
POWER_ON = UndoStep(PowerCommand("on"), unless=FactCheck("machine", "on"))
# A control that cannot tell the state: then only the host itself shows that it is on, and until it does, on is sent.
_POWER_ON_WITHOUT_STATE = UndoStep(PowerCommand("on"), unless=NO_SHUTDOWN_IN_PROGRESS, max_attempts=10)
_ON_CHECKS = (FactCheck("machine", "on"),)


def require_power_control(
    target: Target, why: str, hint: str = "give its host a power control in the inventory", verb: str = "on"
) -> None:
    """Raises Unsupported, saying ``why``, unless the target has a power control that can do ``verb``."""
    if not target.power:
        raise Unsupported(f"{target.node} {why}", hint=hint)
    if verb not in target.power_capabilities:
        raise Unsupported(f"{target.node} has a power control that cannot power it {verb}", hint=hint)


def can_read_power_state(target: Target) -> bool:
    """True if its power control can say whether it is on."""
    return bool(target.power) and "state" in target.power_capabilities


def capture_power_state(target: Target) -> UndoState:
    """What must be remembered of a machine that is to stay down."""
    return {
        "tells": can_read_power_state(target),
        "policy": target.restart_policy,
        "reports": kubelet_reporting_facts(target),
    }


def disable_auto_restart(way: UndoState) -> tuple[Command, ...]:
    """Sent ahead of the fault: else the machine would come on again by itself, as a container does."""
    return (PowerCommand("restart-policy", "no"),) if _has_auto_restart(way) else ()


def power_on_steps(way: UndoState) -> tuple[UndoStep, ...]:
    """On, then the restart policy as it was."""
    if not _has_auto_restart(way):
        return (POWER_ON if way["tells"] else _POWER_ON_WITHOUT_STATE,)
    policy = UndoStep(PowerCommand("restart-policy", way["policy"]), unless=_restart_policy_check(way))
    return (POWER_ON, policy)


def is_up_checks(way: UndoState) -> tuple[FactCheck, ...]:
    """What proves that it is as it was."""
    policy = (_restart_policy_check(way),) if _has_auto_restart(way) else ()
    return (*(_ON_CHECKS if way["tells"] else ()), *kubelet_reporting_checks(way["reports"]), *policy)


def kubelet_reporting_facts(target: Target) -> list[str]:
    """Which of REPORTS hold now, and so must hold again. In the memory for :func:`runs_on`.

    A host without logind, as a stock node of kind, has nobody who could say that it is not going down.
    """
    mute = NO_SHUTDOWN_IN_PROGRESS.fact in target.unknown
    told = [] if mute else [NO_SHUTDOWN_IN_PROGRESS.fact]
    return told + [
        fact for fact, value in _EXPECTED_VALUES.items() if fact not in told and target.facts.get(fact) == value
    ]


def kubelet_reporting_checks(held: list[str]) -> tuple[FactCheck, ...]:
    """What proves that a machine is up, and its kubelet too."""
    return (*(FactCheck(fact, _EXPECTED_VALUES[fact]) for fact in held), FactCheck("node-ready", True))


def _has_auto_restart(way: UndoState) -> bool:
    return way["policy"] not in ("", "no")


def _restart_policy_check(way: UndoState) -> FactCheck:
    return FactCheck("restart-policy", way["policy"])

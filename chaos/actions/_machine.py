"""What the actions that take a machine down share: how it comes back, and when it is really up."""

from __future__ import annotations

from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import Check, Memory, Target, UndoStep
from chaos.model.command import Command, PowerCommand
from chaos.model.errors import Unsupported

# Up is a machine whose logind answers that it is not going down: on and Ready it may also be on its way.
NOT_GOING_DOWN = Check("preparing-for-shutdown", NOT_PREPARING)
# What tells a kubelet that reports from one that did before the machine went down: Ready stays until it is missed.
_REPORTS = {NOT_GOING_DOWN.fact: NOT_PREPARING, "kubelet-state": "active", "boot-posted": True}
REPORTS = tuple(_REPORTS)
POWER_ON = UndoStep(PowerCommand("on"), unless=Check("machine", "on"))
# A control that cannot tell the state: then only the host itself shows that it is on, and until it does, on is sent.
_POWER_ON_BLIND = UndoStep(PowerCommand("on"), unless=NOT_GOING_DOWN, sends=10)
_ON = (Check("machine", "on"),)


def need_power(
    target: Target, why: str, hint: str = "give its host a power control in the inventory", verb: str = "on"
) -> None:
    """Raises Unsupported, saying ``why``, unless the target has a power control that can do ``verb``."""
    if not target.power:
        raise Unsupported(f"{target.node} {why}", hint=hint)
    if verb not in target.power_can:
        raise Unsupported(f"{target.node} has a power control that cannot power it {verb}", hint=hint)


def tells_state(target: Target) -> bool:
    """True if its power control can say whether it is on."""
    return bool(target.power) and "state" in target.power_can


def way_back(target: Target) -> Memory:
    """What must be remembered of a machine that is to stay down."""
    return {"tells": tells_state(target), "policy": target.restart_policy, "reports": reports(target)}


def hold(way: Memory) -> tuple[Command, ...]:
    """Sent ahead of the fault: else the machine would come on again by itself, as a container does."""
    return (PowerCommand("restart-policy", "no"),) if _comes_on(way) else ()


def come_back(way: Memory) -> tuple[UndoStep, ...]:
    """On, then the restart policy as it was."""
    if not _comes_on(way):
        return (POWER_ON if way["tells"] else _POWER_ON_BLIND,)
    policy = UndoStep(PowerCommand("restart-policy", way["policy"]), unless=_policy(way))
    return (POWER_ON, policy)


def up(way: Memory) -> tuple[Check, ...]:
    """What proves that it is as it was."""
    policy = (_policy(way),) if _comes_on(way) else ()
    return (*(_ON if way["tells"] else ()), *runs_on(way["reports"]), *policy)


def reports(target: Target) -> list[str]:
    """Which of REPORTS hold now, and so must hold again. In the memory for :func:`runs_on`.

    A host without logind, as a stock node of kind, has nobody who could say that it is not going down.
    """
    mute = NOT_GOING_DOWN.fact in target.unknown
    told = [] if mute else [NOT_GOING_DOWN.fact]
    return told + [fact for fact, value in _REPORTS.items() if fact not in told and target.facts.get(fact) == value]


def runs_on(held: list[str]) -> tuple[Check, ...]:
    """What proves that a machine is up, and its kubelet too."""
    return (*(Check(fact, _REPORTS[fact]) for fact in held), Check("node-ready", True))


def _comes_on(way: Memory) -> bool:
    return way["policy"] not in ("", "no")


def _policy(way: Memory) -> Check:
    return Check("restart-policy", way["policy"])

"""What the actions that take a machine down share: how it comes back, and when it is really up."""

from __future__ import annotations

from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import Check, Target, UndoStep
from chaos.model.command import PowerCommand
from chaos.model.errors import Unsupported

POWER_ON = UndoStep(PowerCommand("on"), unless=Check("machine", "on"))
# Up is a machine whose logind answers that it is not going down: on and Ready it may also be on its way.
NOT_GOING_DOWN = (Check("preparing-for-shutdown", NOT_PREPARING), Check("node-ready", True))
UP = (Check("machine", "on"), *NOT_GOING_DOWN)


def need_power(target: Target, why: str, hint: str = "give its host a power control in the inventory") -> None:
    """Raises Unsupported, saying ``why``, unless the target has a power control."""
    if not target.power:
        raise Unsupported(f"{target.node} {why}", hint=hint)

"""What a power control is asked for, by the verb of a command."""

from __future__ import annotations

from chaos.core.command import PowerCommand, PowerVerb
from chaos.core.errors import Refused
from chaos.core.ports import PowerControl, RestartPolicyControl, SoftOffControl


def run_power_command(power: PowerControl, command: PowerCommand) -> None:
    """Carry out one command. Raises Refused where the power control cannot, NodefallError where that failed."""
    if command.verb is PowerVerb.ON:
        power.on()
    elif command.verb is PowerVerb.OFF:
        power.off()
    elif command.verb is PowerVerb.SOFT_OFF and isinstance(power, SoftOffControl):
        power.soft_off()
    elif command.verb is PowerVerb.RESTART_POLICY and isinstance(power, RestartPolicyControl):
        power.set_restart_policy(command.value)
    else:
        raise Refused(f"unsupported by the power control: {command}", hint="use the inventory of the plan")

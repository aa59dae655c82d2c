"""Power by programs of your own: a PDU's client, a hypervisor's, a cloud's."""

from __future__ import annotations

import re
from collections.abc import Mapping

from chaos.hosts.power.programs import ProgramResult, run_program
from chaos.hosts.power.secrets import SecretContext, read_secret
from chaos.model.duration import parse_duration
from chaos.model.errors import NodefallError
from chaos.model.inventory import CommandPower, ExitMatch
from chaos.model.ports import ON_OFF_STATE

_HINT = "see power of the inventory; run the program by hand, as this user"


def make_command_control(power: CommandPower, place: SecretContext) -> CommandControl:
    """The power control of one machine. Raises Refused for a secret that cannot be read."""
    return CommandControl(power, {name: read_secret(secret, place) for name, secret in power.environment.items()})


class CommandControl:
    """Implements ``chaos.model.ports.PowerControl``."""

    def __init__(self, power: CommandPower, secrets: Mapping[str, str]) -> None:
        self._power, self._secrets = power, secrets
        self._timeout = parse_duration(power.timeout)
        self.capabilities = ON_OFF_STATE if power.off else ON_OFF_STATE - {"off"}

    def state(self) -> str:
        """``on`` or ``off``: what exactly one of isOn and isOff fits."""
        done = self._run(self._power.status)
        fits = [name for name, says in (("on", self._power.is_on), ("off", self._power.is_off)) if _matches(says, done)]
        if len(fits) != 1:
            why = "isOn and isOff both fit" if fits else "neither isOn nor isOff fits"
            raise NodefallError(f"{self._power.status[0]}: {why} (exit code {done.exit}): {done.output}", hint=_HINT)
        return fits[0]

    def on(self) -> None:
        """Done when the program has ended with 0."""
        self._run_checked(self._power.on)

    def off(self) -> None:
        """Done when the program has ended with 0."""
        if not self._power.off:
            raise NodefallError("power has no command for off", hint="give it one in the inventory")
        self._run_checked(self._power.off)

    def _run_checked(self, argv: list[str]) -> None:
        done = self._run(argv)
        if done.exit:
            raise NodefallError(f"{argv[0]} ended with exit code {done.exit}: {done.output}", hint=_HINT)

    def _run(self, argv: list[str]) -> ProgramResult:
        return run_program(argv, self._timeout, self._secrets, _HINT)


def _matches(says: ExitMatch, done: ProgramResult) -> bool:
    return (says.exit is None or done.exit in says.exit) and (
        says.output is None or re.search(says.output, done.stdout, re.MULTILINE) is not None
    )

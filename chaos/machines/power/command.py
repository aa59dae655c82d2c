"""Power control by programs on this machine, such as the client of a PDU, a hypervisor or a cloud."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictInt

from chaos.core.command import PowerCapability, PowerState
from chaos.core.driver import PowerSettings
from chaos.core.duration import parse_duration
from chaos.core.errors import NodefallError
from chaos.core.field_types import DurationText, Model, Secret
from chaos.core.ports import ON_OFF_STATE
from chaos.machines.driver import PowerDriver
from chaos.machines.local import ProgramResult, SecretContext, read_secret, run_program

_HINT = "see power in the inventory, and run the program by hand as this user"


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Argv = Annotated[list[str], Field(min_length=1)]


class ExitMatch(Model):
    """Condition on how a program ended: its exit code, its output, or both."""

    SOME_OF = ("exit", "output")

    exit: list[StrictInt] | None = Field(None, min_length=1, description="Exit codes, one of which matches.")
    output: Annotated[str, AfterValidator(_regular_expression)] | None = Field(
        None, description="A regular expression that must match somewhere in the standard output."
    )


class CommandPower(PowerSettings):
    """Programs of this machine, run without a shell; on and off must end with 0."""

    kind: Literal["command"] = Field(description="Your own commands.")
    on: Argv = Field(description="The command that powers the machine on.")
    off: Argv | None = Field(None, description="The command that powers the machine off.")
    status: Argv = Field(description="The command that prints the power state.")
    is_on: ExitMatch = Field(alias="isOn", description="When the output of status means that the machine is on.")
    is_off: ExitMatch = Field(alias="isOff", description="When the output of status means that the machine is off.")
    environment: dict[str, Secret] = Field({}, description="Secrets for the programs, each in an environment variable.")
    timeout: DurationText = Field("30s", description="How long a command may take before it counts as failed.")


def make_command_control(power: CommandPower, context: SecretContext) -> CommandControl:
    """Power control of one machine. Raises Refused for a secret that cannot be read."""
    return CommandControl(power, {name: read_secret(secret, context) for name, secret in power.environment.items()})


class CommandControl:
    """Implements ``chaos.core.ports.PowerControl``."""

    def __init__(self, power: CommandPower, secrets: Mapping[str, str]) -> None:
        self._power, self._secrets = power, secrets
        self._timeout = parse_duration(power.timeout)
        self.capabilities = ON_OFF_STATE if power.off else ON_OFF_STATE - {PowerCapability.OFF}

    def state(self) -> PowerState:
        """``on`` or ``off``: whichever of isOn and isOff matches, if exactly one does."""
        result = self._run(self._power.status)
        conditions = ((PowerState.ON, self._power.is_on), (PowerState.OFF, self._power.is_off))
        states = [state for state, condition in conditions if _matches(condition, result)]
        if len(states) != 1:
            why = "isOn and isOff both match" if states else "neither isOn nor isOff matches"
            raise NodefallError(
                f"{self._power.status[0]}: {why} (exit code {result.exit}): {result.output}", hint=_HINT
            )
        return states[0]

    def on(self) -> None:
        """Power on; returns when the program has ended with 0."""
        self._run_checked(self._power.on)

    def off(self) -> None:
        """Power off; returns when the program has ended with 0."""
        if not self._power.off:
            raise NodefallError("power has no command for off", hint="add one to the inventory")
        self._run_checked(self._power.off)

    def _run_checked(self, argv: list[str]) -> None:
        result = self._run(argv)
        if result.exit:
            raise NodefallError(f"{argv[0]} ended with exit code {result.exit}: {result.output}", hint=_HINT)

    def _run(self, argv: list[str]) -> ProgramResult:
        return run_program(argv, self._timeout, self._secrets, _HINT)


def _matches(condition: ExitMatch, result: ProgramResult) -> bool:
    return (condition.exit is None or result.exit in condition.exit) and (
        condition.output is None or re.search(condition.output, result.stdout, re.MULTILINE) is not None
    )


DRIVER = PowerDriver("command", CommandPower, lambda power, host: make_command_control(power, host.secrets))

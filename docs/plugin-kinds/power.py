"""Power control ``my-plugin``: a program that is called as ``PROGRAM on|off|state MACHINE``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.extend.power import (
    ON_OFF_STATE,
    FilePath,
    HostContext,
    NodefallError,
    PowerDriver,
    PowerSettings,
    PowerState,
    run_program,
)

NODEFALL_CONTRACT = 1  # the version of the plug-in contract that this was written for
SECONDS = 60.0  # after which the program is stopped


class MyPower(PowerSettings):
    """The keys of ``power`` in an inventory."""

    kind: Literal["my-plugin"]
    program: FilePath = Field(description="the program that switches machines")
    machine: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="the name of the machine")


class MyControl:
    """Switches one machine."""

    capabilities = ON_OFF_STATE

    def __init__(self, power: MyPower) -> None:
        self._power = power

    def on(self) -> None:
        """Start the machine. Returns once it is on."""
        self._call("on")

    def off(self) -> None:
        """Cut the power. Returns once it is off."""
        self._call("off")

    def state(self) -> PowerState:
        """Whether the machine is on."""
        found = self._call("state")
        if found not in ("on", "off"):
            raise NodefallError(f"power state is unknown: the program printed {found!r}", hint="it prints on or off")
        return PowerState(found)

    def _call(self, verb: str) -> str:
        ran = run_program((self._power.program, verb, self._power.machine), SECONDS)
        if ran.exit:
            raise NodefallError(
                f"{verb} of {self._power.machine} failed: {ran.output}", hint="call the program by hand"
            )
        return ran.stdout.strip()


def make(power: MyPower, host: HostContext) -> MyControl:  # noqa: ARG001 - the program needs nothing of the host
    """The control of one host."""
    return MyControl(power)


DRIVER = PowerDriver("my-plugin", MyPower, make)

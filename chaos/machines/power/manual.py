"""Power control by a person at the machine, who is prompted on the terminal."""

from __future__ import annotations

import os
import select
from threading import Lock
from time import monotonic
from typing import BinaryIO, Literal

from pydantic import Field

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.duration import parse_duration
from chaos.core.errors import NodefallError, Refused
from chaos.core.field_types import DurationText
from chaos.core.ports import ON_OFF
from chaos.machines.driver import PowerDriver

TERMINAL = "/dev/tty"
_REPEAT_INTERVAL = 30.0  # seconds after which the prompt is repeated: other output may have scrolled it away
_PROMPT_LOCK = Lock()  # one prompt at a time


class ManualPower(PowerSettings):
    kind: Literal["manual"] = Field(description="A person, whom nodefall prompts.")
    deadline: DurationText = Field("5m", description="How long nodefall waits for the person.")

    @property
    def names_machine(self) -> bool:
        return bool(self.identity)


def make_manual_control(power: ManualPower, host: str, terminal: str = TERMINAL) -> ManualControl:
    """The power control of a machine. Raises Refused without a terminal for the prompt."""
    try:
        os.close(os.open(terminal, os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        raise Refused(
            f"power of {host} is manual, but there is no terminal for the prompt: {error.strerror}",
            hint="run nodefall on a terminal, or give the host another power control",
        ) from error
    return ManualControl(host, parse_duration(power.deadline), terminal)


class ManualControl:
    """Implements ``chaos.core.ports.PowerControl``.

    A machine that a person has switched off stays off until a person switches it on; one that was switched on may go
    down by itself. Only ``off`` is therefore ever known, and the state never needs a prompt.
    """

    capabilities = ON_OFF

    def __init__(self, host: str, deadline: float, terminal: str) -> None:
        self._host, self._deadline, self._terminal = host, deadline, terminal
        self._is_off = False

    def state(self) -> PowerState:
        """``off`` after :meth:`off`. Raises NodefallError otherwise."""
        if self._is_off:
            return PowerState.OFF
        raise NodefallError(
            f"power state of {self._host} is unknown: its power control is manual", hint="check the machine itself"
        )

    def on(self) -> None:
        """Prompt for the machine to be powered on; returns when the person confirms."""
        self._prompt("on", f"Power {self._host} ON. Once it is on")
        self._is_off = False

    def off(self) -> None:
        """Prompt for the machine's power to be cut; returns when the person confirms."""
        self._prompt("off", f"Cut the power of {self._host} immediately, without shutting it down. Once it is off")
        self._is_off = True

    def _prompt(self, verb: str, request: str) -> None:
        """Prompt until the person types ``verb``. Raises NodefallError on "no" and at the deadline."""
        end = monotonic() + self._deadline
        with _PROMPT_LOCK, open(self._terminal, "r+b", buffering=0) as terminal:
            while (remaining := end - monotonic()) > 0:
                terminal.write(f"\r\n\a{request}, type {verb}; to give up, type no: ".encode())
                answer = _read_line(terminal, min(remaining, _REPEAT_INTERVAL))
                if answer == verb:
                    return
                if answer == "no":
                    raise NodefallError(f"power {verb} of {self._host} failed: the operator answered no")
        raise NodefallError(
            f"power {verb} of {self._host} failed: no answer on the terminal within {self._deadline:g} s",
            hint="raise deadline of its power in the inventory",
        )


def _read_line(terminal: BinaryIO, seconds: float) -> str:
    """One line of input in lower case, "" after ``seconds`` without any."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    return terminal.readline(1000).decode("utf-8", "replace").strip().lower() if ready else ""


DRIVER = PowerDriver("manual", ManualPower, lambda power, host: make_manual_control(power, host.key))

"""Power by a person at the machine, who is asked on the terminal."""

from __future__ import annotations

import os
import select
from threading import Lock
from time import monotonic
from typing import BinaryIO

from chaos.model.duration import parse_duration
from chaos.model.errors import NodefallError, Refused
from chaos.model.inventory import ManualPower
from chaos.model.ports import ON_OFF

TERMINAL = "/dev/tty"
_REPEAT_INTERVAL = 30.0  # seconds after which the question is put again: other output may have pushed it away
_PROMPT_LOCK = Lock()  # one question at a time


def make_manual_control(power: ManualPower, host: str, terminal: str = TERMINAL) -> ManualControl:
    """The power control of one machine. Raises Refused where there is no terminal to ask on."""
    try:
        os.close(os.open(terminal, os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        raise Refused(
            f"power of {host} is manual, but there is no terminal on which somebody could be asked: {error.strerror}",
            hint="run it on a terminal, or give the host another power control",
        ) from error
    return ManualControl(host, parse_duration(power.deadline), terminal)


class ManualControl:
    """Implements ``chaos.model.ports.PowerControl``.

    A machine that a person has switched off stays off until a person switches it on; one that was switched on may go
    down by itself. So of the state, only ``off`` is ever known, and nobody is asked again and again.
    """

    capabilities = ON_OFF

    def __init__(self, host: str, deadline: float, terminal: str) -> None:
        self._host, self._deadline, self._terminal = host, deadline, terminal
        self._is_off = False

    def state(self) -> str:
        if self._is_off:
            return "off"
        raise NodefallError(f"nobody has said whether {self._host} is on", hint="its power is manual: look at it")

    def on(self) -> None:
        """Done when the person says so."""
        self._prompt("on", f"Power {self._host} ON. Once it is on")
        self._is_off = False

    def off(self) -> None:
        """Done when the person says so."""
        self._prompt("off", f"Cut the power of {self._host} at once, without shutting it down. Once it is off")
        self._is_off = True

    def _prompt(self, verb: str, request: str) -> None:
        """Until the person types ``verb``. Raises NodefallError when the deadline is over or they say no."""
        end = monotonic() + self._deadline
        with _PROMPT_LOCK, open(self._terminal, "r+b", buffering=0) as terminal:
            while (left := end - monotonic()) > 0:
                terminal.write(f"\r\n\a{request}, type {verb}; to give up, type no: ".encode())
                answer = _read_line(terminal, min(left, _REPEAT_INTERVAL))
                if answer == verb:
                    return
                if answer == "no":
                    raise NodefallError(f"power {verb} of {self._host}: the person asked says no")
        raise NodefallError(
            f"power {verb} of {self._host}: nobody answered in {self._deadline:g} s",
            hint="see deadline of its power in the inventory",
        )


def _read_line(terminal: BinaryIO, seconds: float) -> str:
    """What is typed, "" if nothing is."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    return terminal.readline(1000).decode("utf-8", "replace").strip().lower() if ready else ""

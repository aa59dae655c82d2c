"""The process of a lab: identified by ID, start time and mark, and signalled through a pidfd."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos.app.labs import MARK
from chaos.cli.lab.lab_state import LabState

_TERMINATION_TIMEOUT = 10.0  # wall seconds after SIGTERM


def start_ticks(pid: int) -> int:
    """The start time of a process in clock ticks since boot (proc_pid_stat(5), field 22). Raises OSError."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


@contextmanager
def find(state: LabState) -> Iterator[int | None]:
    """A pidfd of the lab's process; None if it has ended or its ID was reused."""
    descriptor = None
    try:
        with suppress(OSError):
            descriptor = os.pidfd_open(state.pid)
        yield descriptor if descriptor is not None and _is_lab_process(state) else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_lab_process(state: LabState) -> bool:
    try:
        marked = f"{MARK}={state.mark}".encode() in Path(f"/proc/{state.pid}/environ").read_bytes().split(b"\0")
        return marked and start_ticks(state.pid) == state.start_ticks
    except (OSError, ValueError):  # it has just ended, or belongs to another user
        return False


def terminate(descriptor: int) -> bool:
    """Send SIGTERM, then SIGKILL; False if the process is still alive."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)  # readable once it has ended
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)  # a stopped process does not handle signals
            if selector.select(_TERMINATION_TIMEOUT):
                return True
    return False

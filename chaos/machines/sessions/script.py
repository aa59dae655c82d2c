"""Shell scripts that are sent to hosts, and the clock offset of a host.

A command is an argument of a script of /bin/sh, which prints a mark before and after the command's output. The script
prints each mark to both outputs, as only the order within one output is defined.

The clock offset is measured while a command is armed, so that the host can start it at a given instant.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Callable, Sequence
from math import inf

from chaos.core.errors import Refused

GO = "go"
CLOCK_REQUEST = "clock now\n"  # understood by a shell that has reported its version
MAX_DELAY = 0.2  # seconds to wait for an instant, so that a clock that is set meanwhile does not delay the fault
_SHELL, _NAME = "/bin/sh", "nodefall"
# Additions of bash, from the first clock request on: report its time while it waits, and start at the time `at`
# (microseconds). It waits without a process by reading from a file descriptor that is never written.
_OPEN_IDLE_FD = "{ exec {never}<> <(:); } 2>/dev/null"
_WAIT_UNTIL = (
    'if test -n "$at" && test -n "$never"; then left=$((at - ${EPOCHREALTIME/[.,]/})); '
    f"if ((0 < left && left <= {MAX_DELAY * 1e6:.0f})); then "
    'printf -v left 0.%06d "$left"; read -rt "$left" -u "$never"; fi; fi'
)
_REPORT_CLOCK = (
    f'{_OPEN_IDLE_FD}; until test "$go" = {GO}; do echo "$EPOCHREALTIME"; read -r go at || exit; done; '
    f'{_WAIT_UNTIL}; test -z "$never" || exec {{never}}>&-'
)
_BEGIN, _READY = "mark=$1; shift", 'echo "$mark ready" >&2'
# In a subshell, so that a name is never that of a builtin.
_RUN = '(exec "$@"); code=$?; echo "$mark $code"; echo "$mark $code" >&2; exit $code'
SCRIPT = f'{_BEGIN}; echo "$mark ready"; {_READY}; {_RUN}'
# Reports that it is ready, waits for one line, prints the start time, and runs the command. At end of file it runs
# nothing. Starting `date` takes longer than all the rest, so bash reads its own clock.
ARMED_SCRIPT = (
    f"{_BEGIN}; clock='{_REPORT_CLOCK}'; "
    f'{_READY}; echo "$mark ready $BASH_VERSION" && read -r go at || exit; '
    'test -z "$at" || eval "$clock" || exit; '
    f'test -n "$EPOCHREALTIME" && echo "$EPOCHREALTIME" || date +%s.%N || exit; {_RUN}'
)
# Bash where it is installed, without start-up files.
_PREFER_BASH = f'command -v bash >/dev/null && exec bash --norc -p -c "$0" "$@"; exec {_SHELL} -c "$0" "$@"'
# In single quotes every login shell takes these for themselves: not so a line break, ! in csh, a backslash in fish.
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:=,@+;|&<>{}[]#*?~^-")
_EPOCH = re.compile(r"(\d+)(?:[.,](\d+))?")  # bash writes the locale's comma
_MAX_SAMPLES = 12  # at most
CALIBRATION_TIMEOUT = 2.0  # seconds for all samples
_GOOD_WIDTH, _MAX_WIDTH = 0.002, 0.1  # seconds between the bounds: good enough, and too far apart
_ROUNDING = -0.0001  # seconds; timestamps are rounded, and clocks are slewed


def draw_mark() -> str:
    """A mark for one command."""
    return f"nodefall-{secrets.token_hex(8)}"


def framed_argv(argv: Sequence[str], mark: str) -> list[str]:
    """``argv`` between its marks, without a login shell."""
    return [_SHELL, "-c", SCRIPT, _NAME, mark, *argv]


def armed_argv(argv: Sequence[str], mark: str) -> list[str]:
    """Like :func:`framed_argv`, but waits after the start mark until the command is released."""
    return [_SHELL, "-c", _PREFER_BASH, ARMED_SCRIPT, _NAME, mark, *argv]


def login_line(argv: Sequence[str], mark: str, prefix: Sequence[str] = ()) -> str:
    """A command line by which any login shell (bash, dash, zsh, fish, tcsh, csh) runs ``argv`` in /bin/sh.

    ``argv`` is a framed or armed one; ``prefix`` is sudo, which comes after the shell mark and before the start mark.
    Raises Refused for an argument that no command line can hold.
    """
    if any("\0" in word for word in argv):
        raise Refused(f"{argv[-1]!r} cannot be sent: it contains a NUL character", hint="pass such text on stdin")
    script = f'mark={mark}; echo "$mark shell"; echo "$mark shell" >&2; exec {shlex.join([*prefix, *argv])}'
    return f'exec {_SHELL} -c \'script=$(printf "{_encode(script)}") && eval "$script"\''


def _encode(script: str) -> str:
    """``script`` as a format of printf(1), without a character that shells read differently."""
    escapes = (
        chr(byte) if byte in _PLAIN else "%%" if byte == ord("%") else f"\\{byte:03o}" for byte in script.encode()
    )
    return "".join(escapes)


def parse_start_time(line: str) -> float | None:
    """Seconds since the epoch from ``date +%s.%N`` (busybox prints no fraction) or bash's EPOCHREALTIME."""
    match = _EPOCH.match(line)
    return float(f"{match[1]}.{match[2] or 0}") if match else None


class HostClock:
    """Bounds of a host's clock minus the local one, from the local times before a request and after its reply.

    ``can_report``: the host's shell can report its time and wait. If a clock is set meanwhile, the bounds contradict.
    """

    def __init__(self, can_report: bool) -> None:
        self._can_report = can_report
        self._lower, self._upper = -inf, inf
        self._late_replies = 0  # replies that did not arrive in time

    @property
    def is_known(self) -> bool:
        return _ROUNDING <= self._upper - self._lower <= _MAX_WIDTH

    def measure(
        self, now: Callable[[], float], send: Callable[[str], None], read_line: Callable[[], str | None]
    ) -> bool:
        """Take samples until the offset is accurate enough; returns whether it is known."""
        for _ in range(_MAX_SAMPLES if self._can_report else 0):
            sent = now()
            send(CLOCK_REQUEST)
            self._late_replies += 1
            if (reply := read_line()) is None:
                return False
            self._late_replies -= 1
            if (host_time := parse_start_time(reply)) is None:
                return False
            self._lower, self._upper = max(self._lower, host_time - now()), min(self._upper, host_time - sent)
            if self._upper - self._lower < _GOOD_WIDTH:
                break
        return self.is_known

    def clock_argument(self, at: float | None) -> str:
        """Line that releases the command: immediately, or at the local time ``at``."""
        if at is None or not self.is_known:
            return f"{GO}\n"
        return f"{GO} {round((at + (self._lower + self._upper) / 2) * 1e6)}\n"

    def read_start_time(self, read_line: Callable[[], str | None]) -> float | None:
        """Read the start time that the host reports, skipping late replies."""
        for _ in range(self._late_replies):
            read_line()
        return parse_start_time(read_line() or "")

"""Shell scripts that are sent to hosts, errors of sudo, and the clock offset of a host.

By that offset a host starts a command at a given instant; it is measured while the command is armed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from math import inf

GO = "go"
CLOCK_REQUEST = "clock now\n"  # understood by a shell that has reported its version
MAX_DELAY = 0.2  # seconds to wait for an instant, so that a clock that is set meanwhile does not delay the fault
_READY = "ready"
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
# Reports that it is ready, waits for one line, prints the start time, and becomes the program. At end of file it runs
# nothing. Starting `date` takes longer than all the rest, so bash reads its own clock.
_WAIT_FOR_RELEASE = (
    f"clock='{_REPORT_CLOCK}'; echo {_READY} $BASH_VERSION && read -r go at || exit; "
    'test -z "$at" || eval "$clock" || exit; '
    'test -n "$EPOCHREALTIME" && echo "$EPOCHREALTIME" || date +%s.%N || exit; '
)
ARMED_SCRIPT = f'{_WAIT_FOR_RELEASE}exec "$@"'
# The same for a transport that does not report the program's exit code: it follows each of the two outputs, after a
# mark. Only the order within one output is defined.
_REPORT_EXIT_CODE = (
    f'mark=$1; shift; {_WAIT_FOR_RELEASE}"$@"; code=$?; echo "$mark $code"; echo "$mark $code" >&2; exit $code'
)
# Bash where it is installed, without start-up files.
_SHELL = 'command -v bash >/dev/null && exec bash --norc -p -c "$0" "$@"; exec sh -c "$0" "$@"'
_SUDO_REFUSAL = re.compile(
    r"^sudo: .*(a password is required|terminal is required|must have a tty)|^sudo: .*account validation failure"
    r"|^.*is not in the sudoers file|^Sorry, user .* (is not allowed|may not run)",
    re.MULTILINE,
)
_SUDO_MISSING = re.compile(r"sudo: (command )?not found")
_EPOCH = re.compile(r"(\d+)(?:[.,](\d+))?")  # bash writes the locale's comma
_MAX_SAMPLES = 12  # at most
CALIBRATION_TIMEOUT = 2.0  # seconds for all samples
_GOOD_WIDTH, _MAX_WIDTH = 0.002, 0.1  # seconds between the bounds: good enough, and too far apart
_ROUNDING = -0.0001  # seconds; timestamps are rounded, and clocks are slewed


def command_line(argv: Sequence[str], prefix: Sequence[str] = ()) -> str:
    """``argv``, quoted for the login shell."""
    return shlex.join([*prefix, *argv])


def armed_command_line(argv: Sequence[str], prefix: Sequence[str] = ()) -> str:
    """Command line of an armed ``argv``. sudo comes first, so that it has finished before the fault is released."""
    return shlex.join([*prefix, *_shell_argv(ARMED_SCRIPT), *argv])


def exit_code_argv(argv: Sequence[str], mark: str) -> list[str]:
    """Armed ``argv`` without a login shell; both outputs end with ``mark``, a space and the program's exit code."""
    return [*_shell_argv(_REPORT_EXIT_CODE), mark, *argv]


def _shell_argv(script: str) -> list[str]:
    return ["sh", "-c", _SHELL, script, "nodefall"]


def is_ready(line: str | None) -> bool:
    """Whether ``line`` is the report of an armed script that it is ready."""
    return (line or "").split()[:1] == [_READY]


def has_host_clock(line: str | None) -> bool:
    """Whether the report says that the script can read the host's clock."""
    return is_ready(line) and len((line or "").split()) > 1


def sudo_refusal(stderr: str, host: str, user: str) -> str:
    """Error and remedy if ``stderr`` is a refusal of sudo, else ""."""
    if _SUDO_MISSING.search(stderr):
        return f"sudo is not installed on {host}; install it, or log in as root"
    match = _SUDO_REFUSAL.search(stderr)
    if not match:
        return ""
    reason = next(line for line in stderr[match.start() :].splitlines() if line)
    return (
        f"sudo on {host} requires a password or rejects {user} ({reason.strip()}); put the line "
        f"`{user} ALL=(root) NOPASSWD: ALL` in /etc/sudoers.d/nodefall there"
    )


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
        """Take samples until the offset is known well; returns whether it is known."""
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
        """Line that releases the command: at once, or at the local time ``at``."""
        if at is None or not self.is_known:
            return f"{GO}\n"
        return f"{GO} {round((at + (self._lower + self._upper) / 2) * 1e6)}\n"

    def read_start_time(self, read_line: Callable[[], str | None]) -> float | None:
        """Start time that the host reports, after the replies that arrived late."""
        for _ in range(self._late_replies):
            read_line()
        return parse_start_time(read_line() or "")

"""What is really sent to a host's shell, and what sudo says when it does not let us."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

GO = "go"
CLOCK_REQUEST = "clock now\n"  # of a shell that said its version
MAX_DELAY = 0.2  # seconds to wait for an instant; a clock that was put meanwhile does not hold up the fault
_READY = "ready"
# What bash can besides, from the first question on: tell its time while it waits, and begin when that is `at`
# (microseconds). To wait without a process it reads what nobody writes.
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
# Says that it waits, waits for one line, says when it starts, and becomes the program. Without the line (end of
# file) nothing runs. To start `date` takes longer than all the rest: bash knows the time by itself.
_WAIT_FOR_RELEASE = (
    f"tell='{_REPORT_CLOCK}'; echo {_READY} $BASH_VERSION && read -r go at || exit; "
    'test -z "$at" || eval "$tell" || exit; '
    'test -n "$EPOCHREALTIME" && echo "$EPOCHREALTIME" || date +%s.%N || exit; '
)
ARMED_SCRIPT = f'{_WAIT_FOR_RELEASE}exec "$@"'
# The same where nobody else tells the program's own exit code: it is written behind both outputs, after a mark. Each
# output comes in its own order only.
_REPORT_EXIT_CODE = (
    f'mark=$1; shift; {_WAIT_FOR_RELEASE}"$@"; code=$?; echo "$mark $code"; echo "$mark $code" >&2; exit $code'
)
# Bash where there is one, without anybody's start-up files.
_SHELL = 'command -v bash >/dev/null && exec bash --norc -p -c "$0" "$@"; exec sh -c "$0" "$@"'
_SUDO_REFUSAL = re.compile(
    r"^sudo: .*(a password is required|terminal is required|must have a tty)|^sudo: .*account validation failure"
    r"|^.*is not in the sudoers file|^Sorry, user .* (is not allowed|may not run)",
    re.MULTILINE,
)
_SUDO_MISSING = re.compile(r"sudo: (command )?not found")
_EPOCH = re.compile(r"(\d+)(?:[.,](\d+))?")  # bash writes the locale's comma


def command_line(argv: Sequence[str], prefix: Sequence[str] = ()) -> str:
    """``argv`` for the login shell, quoted."""
    return shlex.join([*prefix, *argv])


def armed_command_line(argv: Sequence[str], prefix: Sequence[str] = ()) -> str:
    """The same, waiting; sudo stands in front, so that its work is done before the fault is fired."""
    return shlex.join([*prefix, *_shell_argv(ARMED_SCRIPT), *argv])


def exit_code_argv(argv: Sequence[str], mark: str) -> list[str]:
    """The same without a login shell; ends both outputs with ``mark``, a space and the program's exit code."""
    return [*_shell_argv(_REPORT_EXIT_CODE), mark, *argv]


def _shell_argv(script: str) -> list[str]:
    return ["sh", "-c", _SHELL, script, "nodefall"]


def is_ready(line: str | None) -> bool:
    """Whether an armed script said that it waits."""
    return (line or "").split()[:1] == [_READY]


def has_host_clock(line: str | None) -> bool:
    """Whether it also said that it knows the time."""
    return is_ready(line) and len((line or "").split()) > 1


def sudo_refusal(stderr: str, host: str, user: str) -> str:
    """What is wrong with sudo and what to do, "" if ``stderr`` is no refusal of sudo's."""
    if _SUDO_MISSING.search(stderr):
        return f"there is no sudo on {host}; install it, or log in as root"
    match = _SUDO_REFUSAL.search(stderr)
    if not match:
        return ""
    said = next(line for line in stderr[match.start() :].splitlines() if line)
    return (
        f"sudo on {host} does not let {user} run it without being asked ({said.strip()}); put the line "
        f"`{user} ALL=(root) NOPASSWD: ALL` in /etc/sudoers.d/nodefall there"
    )


def parse_start_time(line: str) -> float | None:
    """Seconds since the epoch from ``date +%s.%N`` (busybox prints no fraction) or bash's EPOCHREALTIME."""
    match = _EPOCH.match(line)
    return float(f"{match[1]}.{match[2] or 0}") if match else None

"""What is really sent to a host's shell, and what sudo says when it does not let us."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

GO = "go"
ASK = "clock now\n"  # of a shell that said its version
LONGEST = 0.2  # seconds to wait for an instant; a clock that was put meanwhile does not hold up the fault
_READY = "ready"
# What bash can besides, from the first question on: tell its time while it waits, and begin when that is `at`
# (microseconds). To wait without a process it reads what nobody writes.
_NEVER = "{ exec {never}<> <(:); } 2>/dev/null"
_UNTIL = (
    'if test -n "$at" && test -n "$never"; then left=$((at - ${EPOCHREALTIME/[.,]/})); '
    f"if ((0 < left && left <= {LONGEST * 1e6:.0f})); then "
    'printf -v left 0.%06d "$left"; read -rt "$left" -u "$never"; fi; fi'
)
_TELL = (
    f'{_NEVER}; until test "$go" = {GO}; do echo "$EPOCHREALTIME"; read -r go at || exit; done; '
    f'{_UNTIL}; test -z "$never" || exec {{never}}>&-'
)
# Says that it waits, waits for one line, says when it starts, and becomes the program. Without the line (end of
# file) nothing runs. To start `date` takes longer than all the rest: bash knows the time by itself.
_WAITING = (
    f"tell='{_TELL}'; echo {_READY} $BASH_VERSION && read -r go at || exit; "
    'test -z "$at" || eval "$tell" || exit; '
    'test -n "$EPOCHREALTIME" && echo "$EPOCHREALTIME" || date +%s.%N || exit; '
)
ARMED = f'{_WAITING}exec "$@"'
# The same where nobody else tells the program's own exit code: it is written behind both outputs, after a mark. Each
# output comes in its own order only.
_TELLING = f'mark=$1; shift; {_WAITING}"$@"; code=$?; echo "$mark $code"; echo "$mark $code" >&2; exit $code'
# Bash where there is one, without anybody's start-up files.
_SHELL = 'command -v bash >/dev/null && exec bash --norc -p -c "$0" "$@"; exec sh -c "$0" "$@"'
_SUDO = re.compile(
    r"^sudo: .*(a password is required|terminal is required|must have a tty)|^sudo: .*account validation failure"
    r"|^.*is not in the sudoers file|^Sorry, user .* (is not allowed|may not run)",
    re.MULTILINE,
)
_NO_SUDO = re.compile(r"sudo: (command )?not found")
_EPOCH = re.compile(r"(\d+)(?:[.,](\d+))?")  # bash writes the locale's comma


def command_line(argv: Sequence[str], prefix: Sequence[str] = ()) -> str:
    """``argv`` for the login shell, quoted."""
    return shlex.join([*prefix, *argv])


def armed_line(argv: Sequence[str], prefix: Sequence[str] = ()) -> str:
    """The same, waiting; sudo stands in front, so that its work is done before the fault is fired."""
    return shlex.join([*prefix, *_waiting(ARMED), *argv])


def telling_argv(argv: Sequence[str], mark: str) -> list[str]:
    """The same without a login shell; ends both outputs with ``mark``, a space and the program's exit code."""
    return [*_waiting(_TELLING), mark, *argv]


def _waiting(script: str) -> list[str]:
    return ["sh", "-c", _SHELL, script, "nodefall"]


def waits(line: str | None) -> bool:
    """Whether an armed script said that it waits."""
    return (line or "").split()[:1] == [_READY]


def tells(line: str | None) -> bool:
    """Whether it also said that it knows the time."""
    return waits(line) and len((line or "").split()) > 1


def sudo_refusal(stderr: str, host: str, user: str) -> str:
    """What is wrong with sudo and what to do, "" if ``stderr`` is no refusal of sudo's."""
    if _NO_SUDO.search(stderr):
        return f"there is no sudo on {host}; install it, or log in as root"
    match = _SUDO.search(stderr)
    if not match:
        return ""
    said = next(line for line in stderr[match.start() :].splitlines() if line)
    return (
        f"sudo on {host} does not let {user} run it without being asked ({said.strip()}); put the line "
        f"`{user} ALL=(root) NOPASSWD: ALL` in /etc/sudoers.d/nodefall there"
    )


def began_at(line: str) -> float | None:
    """Seconds since the epoch from ``date +%s.%N`` (busybox prints no fraction) or bash's EPOCHREALTIME."""
    match = _EPOCH.match(line)
    return float(f"{match[1]}.{match[2] or 0}") if match else None

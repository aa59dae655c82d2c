"""Errors that a user can act on, each with the exit code that the command line ends with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    HELD = 0
    VIOLATED = 1
    INCONCLUSIVE = 2
    UNDO_PENDING = 3
    REFUSED = 4
    USAGE = 64
    BUG = 70
    SIGINT = 130
    SIGTERM = 143


class NodefallError(Exception):
    """An expected failure: ``message`` says what and where, ``hint`` says what to do about it."""

    code: Exit = Exit.INCONCLUSIVE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Refused(NodefallError):
    """Nothing was touched: a guard, preflight, lock or missing steady state said no."""

    code = Exit.REFUSED


class RequirementUnmet(Refused):
    """The cluster is not configured as the experiment requires; for others it may be."""


class Unsupported(Refused):
    """An action cannot be done on this node; raised by ``Action.prepare``."""


class Unreachable(NodefallError):
    """A host or a power control could not be reached; nothing was sent, so it may be tried again."""


class Aborted(NodefallError):
    """The run stopped early (abort condition, step that could not be sent); undo was attempted."""

    code = Exit.INCONCLUSIVE


class UndoPending(NodefallError):
    """Something could not be taken back, or not be proven to be; beats every other end."""

    code = Exit.UNDO_PENDING


class PluginError(NodefallError):
    """A plug-in cannot be used: it does not load, has no name, or its name is taken."""

    code = Exit.USAGE


class UsageError(NodefallError):
    """The command line, or a combination of its options, makes no sense."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file; ``line`` and ``column`` count from 1, 0 means unknown."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class BadInput(NodefallError):
    """Files that cannot be used; carries every problem found, not only the first."""

    code = Exit.USAGE

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems


def bad_input(file: str, message: str, hint: str = "") -> BadInput:
    """A :class:`BadInput` about a whole file."""
    return BadInput([Problem(file, 0, 0, message, hint)])

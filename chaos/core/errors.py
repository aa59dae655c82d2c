"""Errors that a user can act on, each with the exit code of the command."""

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
    """An expected failure: ``message`` reads ``<what failed>: <why>``, ``hint`` is an imperative."""

    code: Exit = Exit.INCONCLUSIVE

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Refused(NodefallError):
    """Refused before any change: by a guard, preflight, the lock or a missing steady state."""

    code = Exit.REFUSED


class AnotherMachine(Refused):
    """The machine at the address of a host has another identity than the host."""


class RequirementUnmet(Refused):
    """The configuration of the cluster does not meet a requirement of the experiment."""


class Unsupported(Refused):
    """An action is impossible on this node; raised by ``Action.prepare``."""


class Unreachable(NodefallError):
    """A host or a power control could not be reached; nothing was sent, so a retry is safe."""


class Aborted(NodefallError):
    """The run stopped early (abort condition, step that could not be sent); undo was attempted."""

    code = Exit.INCONCLUSIVE


class UndoPending(NodefallError):
    """An undo failed or is not proven; takes precedence over every other exit code."""

    code = Exit.UNDO_PENDING


class PluginError(NodefallError):
    """A plug-in cannot be loaded, has no name, or has a name that is already taken."""

    code = Exit.USAGE


class UsageError(NodefallError):
    """Invalid command line or combination of options."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file; ``line`` and ``column`` count from 1, 0 means unknown."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{position}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class BadInput(NodefallError):
    """Invalid files, with all their problems."""

    code = Exit.USAGE

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems


def bad_input(file: str, message: str, hint: str = "") -> BadInput:
    """A :class:`BadInput` about a whole file."""
    return BadInput([Problem(file, 0, 0, message, hint)])

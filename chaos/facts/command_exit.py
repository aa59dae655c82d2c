"""Exit code of any read-only program."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact


def _require_words(text: str) -> str:
    if not shlex.split(text):
        raise ValueError("argv is empty")
    return text


class CommandExitParams(Model):
    argv: Annotated[str, AfterValidator(_require_words)] = Field(
        description="the program and its arguments, quoted as for a shell; no shell runs it"
    )


class CommandExit(HostFact):
    """Whole number: exit code of ``argv``, run as root without a shell; 127 for a program that does not exist."""

    name = "command-exit"
    summary = "exit code of a read-only program"
    params = CommandExitParams
    options: CommandExitParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return HostCommand(tuple(shlex.split(self.options.argv)), timeout=10.0)

    def parse(self, stdout: str, exit_code: int) -> int:  # noqa: ARG002 - only the exit code counts
        return exit_code


FACT = CommandExit()

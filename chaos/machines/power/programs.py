"""Running programs of this machine: no shell, a time limit, secrets in the environment only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.core.errors import NodefallError, Unreachable

_MAX_OUTPUT = 300  # characters of a program's output that errors quote


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Result of a program. ``secrets`` are removed from :attr:`output`."""

    exit: int
    stdout: str
    stderr: str
    secrets: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """End of stderr, else of stdout, else the exit code; for errors."""
        text = self.stderr.strip() or self.stdout.strip()
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text[-_MAX_OUTPUT:] or f"exit code {self.exit}"


def run_program(
    argv: Sequence[str], timeout: float, secrets: Mapping[str, str] | None = None, hint: str = ""
) -> ProgramResult:
    """Run a program to its end; ``secrets`` are environment variables. Raises Unreachable if it cannot start."""
    secrets = secrets or {}
    try:
        completed = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
            start_new_session=True,  # Ctrl-C is for nodefall alone: the program runs to its end
            env={**os.environ, **secrets},
        )
    except subprocess.TimeoutExpired as error:
        raise NodefallError(
            f"{argv[0]} did not end in {timeout:g} s and was stopped",
            hint="check the power state: the program may have had its effect",
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreachable(f"{argv[0]} cannot be run: {why}", hint=hint or "check power in the inventory") from None
    stdout, stderr = (text.decode("utf-8", "replace") for text in (completed.stdout, completed.stderr))
    return ProgramResult(completed.returncode, stdout, stderr, tuple(filter(None, secrets.values())))

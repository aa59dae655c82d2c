"""Running a program of this machine: no shell, bounded in time, its secrets in the environment only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.model.errors import NodefallError, Unreachable

_MAX_OUTPUT = 300  # characters of what a program said


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How it ended; ``said`` is its last words, without secrets."""

    exit: int
    stdout: str
    stderr: str
    secrets: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        text = self.stderr.strip() or self.stdout.strip()
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text[-_MAX_OUTPUT:] or f"exit code {self.exit}"


def run_program(
    argv: Sequence[str], timeout: float, secrets: Mapping[str, str] | None = None, hint: str = ""
) -> ProgramResult:
    """Run it and wait; ``secrets`` are environment variables. Raises Unreachable where it could not be started."""
    secrets = secrets or {}
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
            start_new_session=True,  # Ctrl-C is for us: what was begun ends
            env={**os.environ, **secrets},
        )
    except subprocess.TimeoutExpired as error:
        raise NodefallError(
            f"{argv[0]} did not end in {timeout:g} s and was stopped",
            hint="it may have been done all the same: ask for the state",
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreachable(f"{argv[0]} cannot be run: {why}", hint=hint or "see power of the inventory") from None
    stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return ProgramResult(done.returncode, stdout, stderr, tuple(filter(None, secrets.values())))

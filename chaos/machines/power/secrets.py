"""Secrets by reference: read when needed, never logged, never part of a message."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.core.errors import Refused
from chaos.core.field_types import Secret
from chaos.core.redaction import register_secret

COMMAND_TIMEOUT = 30  # seconds of wall time
_WRITABLE_BY_OTHERS = 0o022


@dataclass(frozen=True, slots=True)
class SecretContext:
    """Where references to secrets are resolved: the environment, the home of ``~``, the directory of the inventory."""

    environ: Mapping[str, str]
    home: Path
    base: Path = Path()

    def path(self, text: str) -> Path:
        """Absolute path of ``text``: ``~/x`` is in the home, a relative path relative to the inventory file."""
        return self.home / text[2:] if text.startswith("~/") else self.base / text


def read_secret(secret: Secret, context: SecretContext) -> str:
    """The secret, without the line break at its end. Raises Refused; the message never has the secret."""
    if secret.env is not None:
        value = context.environ.get(secret.env, "")
        source = f"environment variable {secret.env}"
    elif secret.file is not None:
        path = context.path(secret.file)
        value, source = _from_file(path), f"secret file {path}"
    else:
        argv = secret.command or []
        value, source = _from_command(argv), f"secret command {argv[0]!r}"
    if not value:
        raise Refused(f"{source} is not set or empty", hint="check the references to secrets in the inventory")
    register_secret(value)
    return value


def resolve_secret(secret: Secret) -> str:
    """The secret, by the environment and home of this process. Raises Refused."""
    return read_secret(secret, SecretContext(os.environ, Path.home()))


def _from_file(path: Path) -> str:
    try:
        if path.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise Refused(f"secret file {path} can be written by others", hint=f"run `chmod go-w {path}`")
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise Refused(f"secret file {path} cannot be read: {error.strerror}", hint="check the inventory") from error
    except UnicodeDecodeError:
        raise Refused(f"secret file {path} is not UTF-8 text", hint="check the inventory") from None


def _from_command(argv: list[str]) -> str:
    """Output of a program, run without a shell. Messages have neither its output nor its arguments."""
    try:
        result = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_TIMEOUT, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise Refused(f"secret command {argv[0]!r} failed: {why}", hint="run it by hand, as this user") from None
    if result.returncode:
        raise Refused(
            f"secret command {argv[0]!r} ended with exit code {result.returncode}", hint="run it by hand, as this user"
        )
    return result.stdout.removesuffix("\n").removesuffix("\r")

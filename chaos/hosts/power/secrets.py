"""Secrets by reference: read when needed, never logged, never part of a message."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.model.errors import Refused
from chaos.model.inventory import Secret
from chaos.model.redaction import register_secret

COMMAND_TIMEOUT = 30  # seconds of wall time
_WRITABLE_BY_OTHERS = 0o022


@dataclass(frozen=True, slots=True)
class SecretContext:
    """Where references are looked up: the environment, the home of ``~``, the folder of the inventory file."""

    environ: Mapping[str, str]
    home: Path
    base: Path = Path()

    def path(self, text: str) -> Path:
        """An absolute path as it is, ``~/x`` in the home, else relative to the inventory file."""
        return self.home / text[2:] if text.startswith("~/") else self.base / text


def read_secret(secret: Secret, place: SecretContext) -> str:
    """The secret, without the line break at its end. Raises Refused, never saying the secret."""
    if secret.env is not None:
        value = place.environ.get(secret.env, "")
        source = f"environment variable {secret.env}"
    elif secret.file is not None:
        path = place.path(secret.file)
        value, source = _from_file(path), f"secret file {path}"
    else:
        argv = secret.command or []
        value, source = _from_command(argv), f"secret command {argv[0]!r}"
    if not value:
        raise Refused(f"{source} is not set or empty", hint="see the inventory's references to secrets")
    register_secret(value)
    return value


def _from_file(path: Path) -> str:
    try:
        if path.stat().st_mode & _WRITABLE_BY_OTHERS:
            raise Refused(f"secret file {path} can be written by others", hint=f"run `chmod go-w {path}`")
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise Refused(f"secret file {path} cannot be read: {error.strerror}", hint="see the inventory") from error
    except UnicodeDecodeError:
        raise Refused(f"secret file {path} is not UTF-8 text", hint="see the inventory") from None


def _from_command(argv: list[str]) -> str:
    """Run without a shell. Neither its output nor its arguments are ever shown."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_TIMEOUT, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise Refused(f"secret command {argv[0]!r} failed: {why}", hint="run it by hand, as this user") from None
    if done.returncode:
        raise Refused(
            f"secret command {argv[0]!r} ended with exit code {done.returncode}", hint="run it by hand, as this user"
        )
    return done.stdout.removesuffix("\n").removesuffix("\r")

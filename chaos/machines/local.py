"""Resources of this machine for drivers: secrets by reference, programs, certificate authorities.

Secrets are read when needed, never logged, never part of a message. Programs run without a shell, with a time limit.
Certificates are always verified, with the system's authorities or one of the inventory.
"""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.core.errors import BadInput, NodefallError, Refused, Unreachable
from chaos.core.field_types import Secret
from chaos.core.programs import run_bounded
from chaos.core.redaction import register_secret
from chaos.core.trusted_files import read_trusted, refuse_untrusted_command, refuse_untrusted_file

COMMAND_TIMEOUT = 30  # seconds of wall time
_MAX_SECRET_BYTES = 1 << 20
_MAX_SECRET_OUTPUT = 64 << 10  # bytes that a secret command may print
_MAX_PROGRAM_OUTPUT = 4 << 20  # bytes
_MAX_OUTPUT = 300  # characters of a program's output that errors quote


@dataclass(frozen=True, slots=True)
class SecretContext:
    """The context of secret references: the environment, the home directory (``~``), the directory of the inventory."""

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


def read_trusted_file(path: Path, limit: int) -> bytes:
    """See :func:`chaos.core.trusted_files.read_trusted`. Raises Refused for a file that others can write, OSError."""
    refuse_untrusted(path)
    return read_trusted(path, limit)


def refuse_untrusted(path: Path) -> None:
    """Raises Refused for a file of the inventory that others can write or replace, or a pipe or device. OSError."""
    with _refused():
        refuse_untrusted_file(path)
    if not path.is_file():  # whoever opens a pipe waits
        raise Refused(f"{path}: not a regular file", hint="check the inventory")


def refuse_unsafe_key(path: Path) -> None:
    """Raises Refused for a private key that others can write or, as ssh, one of this user that they can read. OSError.

    As for ssh, others may read a key of another user: a Secret that is mounted for a group.
    """
    refuse_untrusted(path)
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        raise Refused(f"{path}: not used: other users may read this private key", hint=f"chmod 600 {path}")


@contextmanager
def _refused() -> Iterator[None]:
    """Turn BadInput into Refused inside the block."""
    try:
        yield
    except BadInput as error:
        raise Refused(f"{error.problems[0].file}: {error.problems[0].message}", hint=error.problems[0].hint) from error


def resolve_secret(secret: Secret) -> str:
    """The secret, by the environment and home of this process. Raises Refused."""
    return read_secret(secret, SecretContext(os.environ, Path.home()))


def _from_file(path: Path) -> str:
    try:
        return read_trusted_file(path, _MAX_SECRET_BYTES).decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise Refused(f"secret file {path} cannot be read: {error.strerror}", hint="check the inventory") from error
    except UnicodeDecodeError:
        raise Refused(f"secret file {path} is not UTF-8 text", hint="check the inventory") from None


def _from_command(argv: list[str]) -> str:
    """The output of a program, run without a shell. Messages contain neither its output nor its arguments."""
    with _refused():
        refuse_untrusted_command(argv)
    try:
        result = run_bounded(argv, COMMAND_TIMEOUT, _MAX_SECRET_OUTPUT, has_own_session=False)  # it may ask
        text = result.stdout.decode()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        why = _why(error)
        raise Refused(f"secret command {argv[0]!r} failed: {why}", hint="run it by hand, as this user") from None
    if result.returncode:
        raise Refused(
            f"secret command {argv[0]!r} ended with exit code {result.returncode}", hint="run it by hand, as this user"
        )
    return text.removesuffix("\n").removesuffix("\r")


def _why(error: Exception) -> str:
    """In words; never with what the program printed."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not end in {error.timeout:g} s"
    if isinstance(error, UnicodeDecodeError):
        return "its output is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Result of a program. ``secrets`` are removed from :attr:`output`."""

    exit: int
    stdout: str
    stderr: str
    secrets: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """The end of stderr, of stdout, or the exit code, whichever exists first; for error messages."""
        text = self.stderr.strip() or self.stdout.strip()
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text[-_MAX_OUTPUT:] or f"exit code {self.exit}"


def run_program(
    argv: Sequence[str], timeout: float, secrets: Mapping[str, str] | None = None, hint: str = ""
) -> ProgramResult:
    """Run a program to its end; ``secrets`` are environment variables.

    Raises Unreachable if it cannot start, Refused if others can write it.
    """
    with _refused():
        refuse_untrusted_command(argv)
    secrets = secrets or {}
    try:
        completed = run_bounded(argv, timeout, _MAX_PROGRAM_OUTPUT, env={**os.environ, **secrets})
    except subprocess.SubprocessError as error:
        raise NodefallError(
            f"{argv[0]} {_why(error).removeprefix('it ')} and was stopped",
            hint="check the power state: the program may have had its effect",
        ) from error
    except (OSError, ValueError) as error:
        hint = hint or "check power in the inventory"
        raise Unreachable(f"{argv[0]} cannot be run: {_why(error)}", hint=hint) from None
    stdout, stderr = (text.decode("utf-8", "replace") for text in (completed.stdout, completed.stderr))
    return ProgramResult(completed.returncode, stdout, stderr, tuple(filter(None, secrets.values())))


def client_context(ca_file: str | None, context: SecretContext) -> ssl.SSLContext:
    """A context that verifies certificate and name. Raises Refused for a file that cannot be used."""
    path = context.path(ca_file) if ca_file else None
    try:
        if path:
            refuse_untrusted(path)
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise Refused(f"caFile {path} cannot be used: {error.strerror}", hint="it must be a PEM file") from error

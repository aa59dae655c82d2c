"""Output of commands: stdout, stderr and files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from chaos.model.errors import UsageError
from chaos.model.text import escape_control
from chaos.store.private_files import private_opener


def echo(*lines: str, err: bool = False) -> None:
    """Print one line each. Control characters, as in names and messages of a cluster, are escaped."""
    for line in lines:
        click.echo(escape_control(line), err=err)


def echo_progress(text: str) -> None:
    """Print progress to stderr, ignoring write errors."""
    with suppress(OSError):
        click.echo(text, err=True)


def write(path: Path, text: str, *, private: bool = False) -> None:
    """Write ``text`` as UTF-8; ``private``: readable by the owner only. Raises UsageError."""
    try:
        with open(path, "wb", opener=private_opener if private else None) as file:
            file.write(text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another file or directory") from error

"""What a command says, and files that it was asked to write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from chaos.model.errors import UsageError
from chaos.model.text import escape_control


def echo(*lines: str, err: bool = False) -> None:
    """One line each, whatever is in them: names and messages of a cluster neither end a line nor steer a terminal."""
    for line in lines:
        click.echo(escape_control(line), err=err)


def echo_progress(text: str) -> None:
    """Words for people; that nobody can read them stops nothing."""
    with suppress(OSError):
        click.echo(text, err=True)


def write(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8. Raises UsageError where that is not possible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="name another file or directory"
        ) from error

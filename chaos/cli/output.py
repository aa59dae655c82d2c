"""Output of commands: stdout, stderr and files."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from chaos.core.errors import UsageError
from chaos.core.files import private_opener
from chaos.core.text import escape_control, escape_for_encoding


def echo(*lines: str, err: bool = False) -> None:
    """Print one line each. Control characters, as in names and messages of a cluster, are escaped."""
    for line in lines:
        click.echo(escape_control(line), err=err)


def echo_encodable(*lines: str) -> None:
    """Print lines without control characters of others, with what the encoding of stdout lacks replaced."""
    for line in lines:
        click.echo(escape_for_encoding(line, sys.stdout.encoding or "utf-8"))


def wants_color(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal with colors, and NO_COLOR is unset or empty (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def echo_progress(text: str) -> None:
    """Print progress to stderr, ignoring write errors."""
    with suppress(OSError):
        click.echo(text, err=True)


def open_page(page: Path) -> bool:
    """Open an HTML file in the browser; False if there is none."""
    import webbrowser  # noqa: PLC0415 - slow, and seldom needed

    return webbrowser.open(page.resolve().as_uri())


def write(path: Path, text: str, *, private: bool = False) -> None:
    """Write ``text`` as UTF-8; ``private``: readable by the owner only. Raises UsageError."""
    try:
        with open(path, "wb", opener=private_opener if private else None) as file:
            file.write(text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another file or directory") from error


def write_trusted(path: Path, text: str) -> None:
    """Not writable by others, whatever the umask is: nodefall refuses to read such a file. Raises UsageError."""
    write(path, text)
    try:
        path.chmod(path.stat().st_mode & ~0o022)
    except OSError as error:
        raise UsageError(f"cannot change the mode of {path}: {error.strerror}", hint="give another file") from error

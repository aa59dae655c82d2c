"""Output of commands, what their terminal can show, and the question before machines go down."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from chaos.core.errors import Exit, Refused, UsageError
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


def confirm_name(kind: str, name: str, fault: str, machines: str) -> None:
    """Say which ``machines`` go down, and ask for the ``name`` of the ``kind``, an inventory or a fleet.

    ``fault``: what takes them down, a run or a fleet. Raises Refused if another name is typed, and without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            f"not confirmed: the {fault} takes down {machines}, and there is no terminal to ask on",
            hint="pass --yes to confirm",
        )
    question = f"{machines} will go down. Type the name of the {kind} to continue"
    typed = click.prompt(question, default="", show_default=False, err=True)
    if typed.strip() != name:
        raise Refused(f"not confirmed: the name of the {kind} is {name!r}", hint="pass --yes to confirm without asking")


def print_error(text: str) -> None:
    """Print to stderr. If it is closed or the disk is full, the exit code still reports the result."""
    with suppress(OSError):
        click.echo(escape_for_encoding(text, sys.stderr.encoding), err=True, nl=False)


def echo_document(document: str, exit_code: int) -> int:
    """Print the result on stdout; the exit code, which is not 0 if the write fails."""
    try:
        click.echo(document, nl=False)
    except OSError:
        return exit_code or Exit.INCONCLUSIVE
    return exit_code


def can_redraw(stream: TextIO) -> bool:
    """Whether it is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def is_foreground(stream: TextIO) -> bool:
    """Whether this process is in the foreground of the terminal of ``stream``, or no shell controls its jobs."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


def to_json(documents: Any) -> str:
    """Indented JSON."""
    import msgspec  # noqa: PLC0415 - slow, and not needed for --help

    return msgspec.json.format(msgspec.json.encode(documents), indent=2).decode()

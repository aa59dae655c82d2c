"""Output of commands, what their terminal can show, and questions; and the process: its streams, garbage, and end."""

from __future__ import annotations

import atexit
import gc
import os
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from chaos.core.errors import Exit, Refused, UsageError
from chaos.core.files import private_opener
from chaos.core.redaction import redact, redact_bytes
from chaos.core.text import escape_control, escape_for_encoding, is_ci, without_commands

OUTPUT = "chaos.cli.output"  # key in the metadata of a click context: json or yaml
_CLOSED_PIPES: set[int] = set()
_GENERATIONS = (50_000, 20, 100)


def open_standard_streams() -> None:
    """Open closed standard streams: else the next file opened, as the journal, would get their descriptor."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name) or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the whole process
        is_log = is_ci(os.environ) and not stat.S_ISREG(os.fstat(number).st_mode)
        setattr(sys, name, StandardStream(stream, number, is_log=is_log))


def redirect_to_null(number: int) -> None:
    """Discard further output of a stream, as of the interpreter's final flush."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


def is_closed_pipe(number: int) -> bool:
    """Whether the standard stream is a pipe whose other end was found closed: what is written is not read."""
    return number in _CLOSED_PIPES


class OutputFailed(OSError):
    """Standard output cannot be written, for example because the disk is full."""


class StandardStream:
    """A text or binary stream on the descriptor ``number``; ``is_log``: it is the log of a CI job.

    Secrets are redacted, and commands to the CI service. Once the other end of a pipe is closed, all is discarded: the
    command continues, as a run must undo its fault, and ends with its usual exit code.
    """

    def __init__(self, stream: Any, number: int, *, is_log: bool = False) -> None:
        self._stream, self._number, self._is_log = stream, number, is_log

    @property
    def buffer(self) -> StandardStream:
        """The binary stream, to which click writes bytes, and text if the encoding is ASCII."""
        return StandardStream(self._stream.buffer, self._number, is_log=self._is_log)

    def write(self, data: str | bytes) -> int:
        """Write redacted ``data``. Raises OutputFailed, as for a full disk, but not for a closed pipe."""
        data = redact(data) if isinstance(data, str) else redact_bytes(bytes(data))
        if self._is_log:
            data = without_commands(data) if isinstance(data, str) else _bytes_without_commands(data)
        try:
            return int(self._stream.write(data))
        except BrokenPipeError:
            self._discard()
            return len(data)
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from error

    def flush(self) -> None:
        """Flush. Raises OutputFailed, but not for a closed pipe."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._discard()
            self._stream.flush()
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from error

    def _discard(self) -> None:
        _CLOSED_PIPES.add(self._number)
        redirect_to_null(self._number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _bytes_without_commands(data: bytes) -> bytes:
    return without_commands(data.decode("latin-1")).encode("latin-1")


class ProcessEnd:
    """Ends the process with ``code`` after all other functions of atexit, if daemon threads are alive then.

    Created before anything else registers such a function: they run in reverse order, and this one does not return.
    """

    def __init__(self) -> None:
        self.code: int | None = None  # unknown: the interpreter ends as ever
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is None or not any(thread.daemon for thread in threading.enumerate()):
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # _flush() has reported it
                stream.flush()
        os._exit(self.code)


def tune_gc() -> None:
    """Collect rarely, and examine only the objects that are newer than the last collection.

    Pauses then do not grow with the timeline. Cyclic garbage that survives its first collection is not freed before
    :func:`free_finished_run`. For a process that ends with its runs, as it changes the whole process.
    """
    gc.set_threshold(*_GENERATIONS)
    gc.callbacks.append(_freeze_survivors)


def free_finished_run() -> None:
    """Free what a finished run has left, before the next one of the process."""
    gc.unfreeze()
    gc.collect()


def _freeze_survivors(phase: str, _: dict[str, int]) -> None:
    if phase == "stop":
        gc.freeze()


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
            f"not confirmed: the {fault} takes down {machines}, and there is no terminal to ask",
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


def print_document(document: Any) -> None:
    """Print an object on stdout: as JSON, or as YAML with ``--output yaml``."""
    import json  # noqa: PLC0415 - slow, and only needed with --json

    click.echo(as_output(json.dumps(document, indent=2)))


def as_output(text: str) -> str:
    """JSON as it is, or the same in YAML with ``--output yaml``."""
    context = click.get_current_context(silent=True)
    if context is None or context.meta.get(OUTPUT) != "yaml":
        return text
    import json  # noqa: PLC0415 - slow, and only needed here

    from chaos.documents.yaml_text import dump  # noqa: PLC0415

    written = dump([json.loads(text)])
    return written if text.endswith("\n") else written.removesuffix("\n")


def echo_document(document: str, exit_code: int) -> int:
    """Print the result on stdout; the exit code, which is not 0 if the write fails."""
    try:
        click.echo(as_output(document), nl=False)
    except OSError as error:
        print_error(f"error: cannot write the output: {error.strerror}\n")
        redirect_to_null(1)
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

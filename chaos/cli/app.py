"""The root command, and the exit code of every outcome."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import click

from chaos import __version__
from chaos.cli.lazy import LazyGroup, add_log_options
from chaos.cli.output import OutputFailed, ProcessEnd, echo, open_standard_streams, redirect_to_null
from chaos.core.errors import BadInput, Exit, NodefallError, UndoPending

PROGRAM = "nodefall"
_COMPLETE = "_NODEFALL_COMPLETE"  # set by the completion scripts


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Make Kubernetes nodes fall over on purpose, and prove what the cluster did about it.

    Exit codes: 0 all held, 1 violated, 2 inconclusive, 3 undo pending, 4 refused,
    64 bad input, 70 a bug of nodefall, 130 and 143 interrupted and undone.

    \b
    Examples:
      nodefall demo
      nodefall run experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


add_log_options(cli, hidden=False)


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM outside a run, which would have to be undone first."""


def run() -> NoReturn:
    """Run the command line of this process, and exit."""
    end = ProcessEnd()
    os.umask(os.umask(0o022) | 0o022)  # no file that another user may write, which would be refused when it is read
    open_standard_streams()
    silence_urllib3()
    signal.signal(signal.SIGTERM, _terminate)
    if _COMPLETE in os.environ:
        cli.main(prog_name=PROGRAM)
    end.code = _flush(main(sys.argv[1:]))
    sys.exit(end.code)


def _flush(code: int) -> int:
    """Flush stdout and stderr; the exit code. If the interpreter's final flush failed, it would exit with 120."""
    try:
        sys.stdout.flush()
    except OSError as error:
        redirect_to_null(1)
        code = code or Exit.INCONCLUSIVE
        with suppress(OSError):
            click.echo(f"error: cannot write the output: {error.strerror}", err=True)
    try:
        sys.stderr.flush()
    except OSError:
        redirect_to_null(2)
    return code


def main(arguments: list[str]) -> int:
    """Run a command; its exit code. Errors are printed to stderr without a traceback; with --json to stdout, too."""
    try:
        with cli.make_context(PROGRAM, arguments) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except SystemExit as error:  # raised by commands to set the exit code
        return error.code if isinstance(error.code, int) else Exit.HELD
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - anything unexpected is a bug, with its traceback in a file
        message = _describe_error(error)
        if isinstance(error, OutputFailed):
            redirect_to_null(1)  # what is buffered cannot be written either
        with suppress(OSError):  # the exit code still reports the failure
            echo(*message.lines, err=True)
        if {"--json", "-o", "--output"} & {*arguments}:
            _echo_json(message)
        return message.code
    return int(result) if isinstance(result, int) else Exit.HELD


@dataclass(frozen=True, slots=True)
class _ErrorMessage:
    """An error as printed, and its exit code. ``problems`` replace the message if there are several."""

    code: int
    message: str
    hint: str = ""
    usage: str = ""
    bug: str = ""
    problems: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        first, *more = self.problems or (self.message,)
        plain = "interrupted" if self.code in {Exit.SIGINT, Exit.SIGTERM} else f"error: {first}"
        hint = f"hint: {self.hint}" if self.hint else ""
        return [line for line in (*self.usage.splitlines(), self.bug, plain, *more, hint) if line]


def _describe_error(error: BaseException) -> _ErrorMessage:
    """The message of an error. A bug's traceback is written to a file."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return _ErrorMessage(Exit.SIGTERM if isinstance(error, TerminationSignal) else Exit.SIGINT, "interrupted")
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        hint = f"{context.command_path} --help" if context else ""
        return _ErrorMessage(Exit.USAGE, error.format_message(), hint, context.get_usage() if context else "")
    if isinstance(error, OutputFailed):
        return _ErrorMessage(Exit.INCONCLUSIVE, f"cannot write the output: {error.strerror}", "write it somewhere else")
    if isinstance(error, NodefallError):
        cause = error.__cause__
        is_bug = isinstance(error, UndoPending) and not isinstance(cause, NodefallError | KeyboardInterrupt | None)
        also = f"error: {_describe_bug(cause)}" if is_bug and cause else ""
        problems = tuple(map(str, error.problems)) if isinstance(error, BadInput) else ()
        return _ErrorMessage(error.code, error.message, error.hint, bug=also, problems=problems)
    return _ErrorMessage(Exit.BUG, _describe_bug(error))


def _echo_json(message: _ErrorMessage) -> None:
    """Print the error as one JSON object."""
    import json  # noqa: PLC0415 - slow, and only needed with --json

    error = {"code": int(message.code), "message": message.message, "hint": message.hint}
    with suppress(OSError):
        click.echo(json.dumps({"error": error}))


def _describe_bug(error: BaseException) -> str:
    """One line that names the file with the traceback."""
    import tempfile  # noqa: PLC0415 - slow, and seldom needed
    import traceback  # noqa: PLC0415

    from chaos.core.redaction import redact  # noqa: PLC0415

    text = "".join(traceback.format_exception(error))
    summary = " ".join(redact(f"{type(error).__name__}: {error}").split())[:300]  # redact before cutting a secret
    try:
        with tempfile.NamedTemporaryFile("w", prefix="nodefall-bug-", suffix=".txt", delete=False) as file:
            file.write(redact(f"nodefall {__version__}, Python {sys.version}\n{text}"))
        location = f"traceback: {file.name}"
    except OSError as failed:
        location = f"cannot write the traceback: {failed}"
    return f"this is a bug in nodefall, please report it: {summary} ({location})"


def silence_urllib3() -> None:
    """Drop urllib3's warning about each request without verification: the check ``api-connection`` reports it once."""
    warnings.filterwarnings("ignore", message="Unverified HTTPS request")


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a handler's signature
    raise TerminationSignal

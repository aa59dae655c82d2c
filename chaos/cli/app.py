"""Commands by name, and every way to end with its exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from chaos import __version__
from chaos.cli.lazy import LazyGroup
from chaos.model.errors import Exit, NodefallError

PROGRAM = "nodefall"
_COMPLETE = "_NODEFALL_COMPLETE"  # set by the completion scripts


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Make Kubernetes nodes fall over on purpose, and prove what the cluster did about it.

    \b
    Exit codes: 0 all held, 1 violated, 2 inconclusive, 3 undo owed, 4 refused,
    64 bad input, 70 a bug of nodefall, 130 and 143 interrupted and undone.

    \b
    Examples:
      nodefall demo
      nodefall run experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run() -> NoReturn:
    """Run the command line of this process and exit."""
    if _COMPLETE in os.environ:
        cli.main(prog_name=PROGRAM)
    code = main(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
    sys.exit(code)


def main(arguments: list[str]) -> int:
    """Run a command; its exit code. Errors are told on stderr, never with a traceback."""
    try:
        with cli.make_context(PROGRAM, arguments) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever nobody expected is our bug
        return _tell(error)
    return int(result) if isinstance(result, int) else Exit.HELD


def _tell(error: BaseException) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return Exit.SIGINT
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, NodefallError):
        return _expected(error)
    if isinstance(error, BrokenPipeError):
        _drop_stdout()
        return Exit.INCONCLUSIVE  # the command did not finish
    return _bug(error)


def _usage(error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context:
        click.echo(context.get_usage(), err=True)
    click.echo(f"error: {error.format_message()}", err=True)
    if context:
        click.echo(f"hint: {context.command_path} --help", err=True)
    return Exit.USAGE


def _expected(error: NodefallError) -> int:
    click.echo(f"error: {error.message}", err=True)
    if error.hint:
        click.echo(f"hint: {error.hint}", err=True)
    return error.code


def _bug(error: BaseException) -> int:
    """One line on stderr; the traceback goes to a file."""
    import tempfile  # noqa: PLC0415 - slow, and hopefully never needed
    import traceback  # noqa: PLC0415

    text = "".join(traceback.format_exception(error))
    told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    try:
        with tempfile.NamedTemporaryFile("w", prefix="nodefall-bug-", suffix=".txt", delete=False) as file:
            file.write(f"nodefall {__version__}, Python {sys.version}\n{text}")
        where = f"the traceback is in {file.name}"
    except OSError as failed:
        where = f"the traceback could not be written: {failed}"
    click.echo(f"error: this is a bug in nodefall, please report it: {told} ({where})", err=True)
    return Exit.BUG


def _drop_stdout() -> None:
    """Nobody reads us any more: let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

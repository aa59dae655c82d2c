"""The table of commands, whose modules are imported on use, and the options that several commands share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from chaos.cli.complete import DEFAULT_REPORTS, ExperimentPath, complete_experiment_file, complete_inventory_file
from chaos.cli.help import HelpContext
from chaos.cli.output import OUTPUT
from chaos.core.duration import parse_duration
from chaos.core.errors import UsageError

_VERBOSE = "chaos.cli.verbose"  # key in the metadata of a click context
# Name: (folder, short help), by the sections and in the order of --help. The module ``commands`` of the folder has it.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("run", "Power off a node of a simulated cluster and report."),
        "new": ("setup", "Write the skeleton of an experiment."),
        "init": ("setup", "Write the inventory of a cluster, from its kubeconfig."),
        "suggest": ("run", "Find what is fragile in a cluster, and write experiments."),
    },
    "Run": {
        "doctor": ("setup", "Check which experiments a cluster is ready for."),
        "plan": ("run", "Select targets and show exactly what a run would send."),
        "run": ("run", "Run an experiment: plan, inject, undo, judge and report."),
        "watch": ("cluster", "Show a run that is in progress, or a cluster, in the browser."),
        "undo": ("cluster", "Finish the pending undo of a run."),
        "abort": ("cluster", "Stop the run on a cluster, from any machine."),
        "status": ("cluster", "Show the active run of a cluster, and its pending undo."),
    },
    "Look": {
        "runs": ("history", "List the stored runs; runs prune deletes old ones."),
        "show": ("history", "Show the verdicts of a stored run."),
        "report": ("history", "Render the report of a run again."),
        "trend": ("history", "Show how durations change from run to run of an experiment."),
        "compare": ("run", "Compare runs with predictions, or with each other."),
        "judge": ("history", "Judge a run or a recording again, without a cluster."),
    },
    "Prepare": {
        "rehearse": ("run", "Run an experiment on copies of a cluster."),
        "snapshot": ("cluster", "Copy the structure of a cluster into a file, for a lab."),
        "gameday": ("gameday", "Run experiments in a window, behind gates."),
    },
    "More": {
        "lab": ("lab", "Start and stop the simulated cluster."),
        "kind": ("kind", "Create and delete a cluster of containers with kind."),
        "list": ("reference", "List experiments, actions, assertions and facts."),
        "explain": ("reference", "Explain an action, assertion, fact, time word or experiment."),
        "validate": ("reference", "Check files, without a cluster."),
        "rbac": ("reference", "Print the permissions that experiments need on a cluster."),
        "sudoers": ("reference", "Print the sudo rules that experiments need on hosts."),
        "windows-rights": ("reference", "Print the rights that experiments need on Windows hosts."),
        "schema": ("reference", "Print the JSON Schema of all kinds of files."),
        "completion": ("reference", "Print the completion script of a shell."),
    },
}
COMMANDS = {name: row for rows in SECTIONS.values() for name, row in rows.items()}


class LazyGroup(click.Group):
    """The commands of the table :data:`COMMANDS`: the function ``NAME_command`` of the group's module."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"chaos.cli.{COMMANDS[cmd_name][0]}.commands")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        discard_unhandled_records()
        return add_log_options(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, 1, 0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"unknown command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        longest = max(map(len, COMMANDS))
        for title, rows in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), short) for name, (_, short) in rows.items()])


def command(
    *lines: str, of: click.Group | None = None, name: str | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command with examples below its help. ``of``: the group that a subcommand belongs to."""
    return (of.command if of else click.command)(name, epilog=examples(*lines))


def examples(*lines: str) -> str:
    """The epilog of a command: a section with examples below its help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def add_log_options(command: click.Command, *, hidden: bool = True) -> click.Command:
    """Add the options to ``command``, and to every command of a group: they are global, and accepted anywhere.

    Only the help of the root shows them. Idempotent.
    """
    command.context_class = HelpContext
    if isinstance(command, click.Group):
        for sub in command.commands.values():
            add_log_options(sub)
    is_run = not isinstance(command, click.Group) or command.invoke_without_command
    if is_run and not any(parameter.name == "log_file" for parameter in command.params):
        command.params += [_verbose_option(hidden), _log_file_option(hidden)]
    return command


def discard_unhandled_records() -> None:
    """Without -v and --log-file, print no log records: logging prints warnings to stderr if it has no handler."""
    import logging  # noqa: PLC0415 - slow, and not needed for --help

    logger = logging.getLogger("chaos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def is_verbose() -> bool:
    """Whether log records are printed to stderr, where a view that redraws itself would overwrite them."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_VERBOSE))


def _verbose_option(hidden: bool) -> click.Option:
    return click.Option(
        ["-v", "--verbose", "verbose"],
        count=True,
        expose_value=False,
        callback=_print_records,
        hidden=hidden,
        help="Log to stderr. -vv also logs every API request and host command.",
    )


def _log_file_option(hidden: bool) -> click.Option:
    return click.Option(
        ["--log-file", "log_file"],
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=_write_records,
        hidden=hidden,
        help="Append a debug log to this file.",
    )


def _print_records(ctx: click.Context, _: click.Parameter, count: int) -> None:
    if not count or ctx.resilient_parsing:
        return
    import logging  # noqa: PLC0415 - slow, and seldom needed

    from chaos.app.wiring.logs import attached, stderr_handler  # noqa: PLC0415

    ctx.meta[_VERBOSE] = True
    ctx.with_resource(attached(stderr_handler(logging.DEBUG if count > 1 else logging.INFO)))


def _write_records(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is None or ctx.resilient_parsing:
        return
    from chaos.app.wiring.logs import attached, log_file_handler  # noqa: PLC0415 - slow, and seldom needed
    from chaos.core.errors import UsageError  # noqa: PLC0415

    try:
        handler = log_file_handler(path)
    except OSError as error:
        raise UsageError(f"--log-file: cannot open {path}: {error.strerror}") from error
    ctx.with_resource(attached(handler))


_F = TypeVar("_F", bound=Callable[..., Any])


def document_option(text: str) -> Callable[[_F], _F]:
    """``--json``, and ``--output`` as kubectl has it: the command's ``as_json``. ``text``: help of the first."""

    def add(function: _F) -> _F:
        as_json = click.option("--json", "as_json", is_flag=True, callback=_or_output, help=text)
        return as_json(_output_option(function))

    return add


def _or_output(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    return value or OUTPUT in ctx.meta


def _note_output(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value:
        ctx.meta[OUTPUT] = value


_output_option = click.option(
    "--output",
    "-o",
    type=click.Choice(["json", "yaml"]),
    is_eager=True,
    expose_value=False,
    callback=_note_output,
    help="Print JSON as --json does, or the same in YAML.",
)
json_option = document_option("Print one JSON object on stdout.")
result_option = document_option("Print the result as one JSON object on stdout.")
plain_option = click.option("--plain", is_flag=True, help="Plain progress lines, also on a terminal.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress: print the result only.")
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Number of processes at a time. [default: one for each core]",
)
first_seed_option = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed; the others follow it."
)
reports_option = click.option("--reports", type=click.Path(path_type=Path), default=DEFAULT_REPORTS, show_default=True)
stored_runs_option = click.option(
    "--reports",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_REPORTS,
    show_default=True,
    help="Where the run directories are.",
)
experiment_argument = partial(click.argument, shell_complete=complete_experiment_file, type=ExperimentPath())


def file_option(name: str, help_: str, **settings: Any) -> Callable[[_F], _F]:
    """An option that names a file."""
    return click.option(name, type=click.Path(path_type=Path, dir_okay=False), help=help_, **settings)


def inventory_option(text: str, **settings: Any) -> Callable[[_F], _F]:
    """``--inventory`` and ``-i``, completed in a shell. ``text``: its help."""
    return click.option("--inventory", "-i", shell_complete=complete_inventory_file, help=text, **settings)


def parse_time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """The moment of an option in seconds since the epoch: a date, a date and time (UTC by default), or an age."""
    from chaos.core.clock.system import SystemClock  # noqa: PLC0415 - slow, and seldom needed

    if value is None:
        return None
    with suppress(ValueError):
        return SystemClock().now() - parse_duration(value)
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        message = f"{value!r} is not a time; write it like 2026-11-21, 2026-11-21T03:35 or, for an age, 7d"
        raise click.BadParameter(message, ctx, param) from None


def require_reports(reports: Path) -> None:
    """Raise UsageError if the directory of --reports is missing. The first run creates the default one."""
    if reports != DEFAULT_REPORTS and not reports.is_dir():
        raise UsageError(f"--reports: no directory {reports}", hint="give the directory that holds EXPERIMENT/STAMP")


def out_option(help_: str) -> Callable[[_F], _F]:
    """``--out DIR``."""
    return click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help=help_)


cluster_option = inventory_option("The cluster; there is no default. [env: NODEFALL_INVENTORY]")


def seconds_of(option: str, text: str) -> float:
    """The seconds of a duration. ``option``: its name, as ``--wait``. Raises UsageError."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def refuse_with_fleet(**given: object) -> None:
    """Raise UsageError for the first argument or option that is given with --fleet. Arguments are in upper case."""
    name = next((name for name, value in given.items() if value is not None and value is not False), "")
    if name:
        shown = name if name.isupper() else f"--{name}"
        raise UsageError(
            f"{shown} cannot be combined with --fleet", hint="the fleet names its game day and its clusters"
        )

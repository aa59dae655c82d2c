"""The table of commands, whose modules are imported when they are used, and the options that all of them have."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

_VERBOSE = "chaos.cli.verbose"  # key in the metadata of a click context
# Name: (group, short help), in the order of --help. The module ``commands`` of the group declares it.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("run", "Power off a node of a simulated cluster and report."),
    "new": ("setup", "Write the skeleton of an experiment: what fails, what must hold."),
    "init": ("setup", "Write the inventory of a cluster, from its kubeconfig; ends with doctor."),
    "validate": ("reference", "Check experiments, inventories, game days and fleets, without a cluster."),
    "doctor": ("setup", "Check which experiments a cluster and its hosts are ready for."),
    "plan": ("run", "Select targets and show exactly what a run would send."),
    "run": ("run", "Plan, inject, observe, roll back, judge and report."),
    "rehearse": ("run", "Run an experiment on copies of a cluster, and show what would be lost."),
    "compare": ("run", "Compare runs with what was predicted, or with each other."),
    "undo": ("cluster", "Finish the pending undo of a run."),
    "status": ("cluster", "Show the active run of a cluster, and its pending undo."),
    "abort": ("cluster", "Stop the run on a cluster, from any machine, and wait for its undo."),
    "watch": ("cluster", "Show a run of another process, or a cluster, in the browser."),
    "judge": ("history", "Judge a run or a recording again, without a cluster."),
    "report": ("history", "Render the report of a run again."),
    "runs": ("history", "List the stored runs; runs prune deletes old ones."),
    "show": ("history", "Show the verdicts of a stored run."),
    "trend": ("history", "Show how measured durations of an experiment change over its runs."),
    "rbac": ("reference", "Print the least permissions that experiments need on a cluster."),
    "sudoers": ("reference", "Print the sudo rules that experiments need on hosts."),
    "windows-rights": ("reference", "Print the rights that experiments need on Windows hosts."),
    "gameday": ("gameday", "Game days: experiments in a window, behind gates, with one switch."),
    "snapshot": ("cluster", "Copy the structure of a cluster into a file, for a lab."),
    "lab": ("lab", "Start and stop the simulated cluster."),
    "kind": ("kind", "Create and delete a cluster of containers with kind."),
    "list": ("reference", "List actions, assertions and facts."),
    "explain": ("reference", "Explain one action, assertion, fact or time word."),
    "schema": ("reference", "Print the JSON Schema of experiments, inventories, game days and fleets."),
    "completion": ("reference", "Print the completion script of a shell."),
}


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
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])


def command(
    *lines: str, of: click.Group | None = None, name: str | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command, with these examples below its help. ``of``: the group of a subcommand."""
    return (of.command if of else click.command)(name, epilog=examples(*lines))


def examples(*lines: str) -> str:
    """The epilog of a command: a section with examples below its help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def add_log_options(command: click.Command) -> click.Command:
    """Add the options to ``command``, and to every command of a group. Idempotent."""
    if isinstance(command, click.Group):
        for sub in command.commands.values():
            add_log_options(sub)
    is_run = not isinstance(command, click.Group) or command.invoke_without_command
    if is_run and not any(parameter.name == "log_file" for parameter in command.params):
        command.params += [_verbose_option(), _log_file_option()]
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


def _verbose_option() -> click.Option:
    return click.Option(
        ["-v", "--verbose", "verbose"],
        count=True,
        expose_value=False,
        callback=_print_records,
        help="Log to stderr; -vv also every API request and host command.",
    )


def _log_file_option() -> click.Option:
    return click.Option(
        ["--log-file", "log_file"],
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=_write_records,
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

"""A group of commands whose modules are imported when they are used."""

from __future__ import annotations

import importlib
from difflib import get_close_matches

import click

from chaos.cli.log_options import add_log_options, discard_unhandled_records

# Name: (module, short help), in the order of --help.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("chaos.cli.demo", "Power off a node of a simulated cluster and report."),
    "new": ("chaos.cli.new.command", "Write the skeleton of an experiment: what fails, what must hold."),
    "init": ("chaos.cli.init.command", "Write the inventory of a cluster, from its kubeconfig; ends with doctor."),
    "validate": ("chaos.cli.validate", "Check experiments, inventories, game days and fleets, without a cluster."),
    "doctor": (
        "chaos.cli.doctor.command",
        "Check which experiments a cluster and its hosts are ready for.",
    ),
    "plan": ("chaos.cli.plan", "Select targets and show exactly what a run would send."),
    "run": ("chaos.cli.run.command", "Plan, inject, observe, roll back, judge and report."),
    "rehearse": (
        "chaos.cli.rehearse.command",
        "Run an experiment on copies of a cluster, and show what would be lost.",
    ),
    "compare": ("chaos.cli.compare.command", "Compare runs with what was predicted, or with each other."),
    "undo": ("chaos.cli.undo.command", "Finish the pending undo of a run."),
    "status": ("chaos.cli.cluster.status", "Show the active run of a cluster, and its pending undo."),
    "abort": ("chaos.cli.cluster.abort", "Stop the run on a cluster, from any machine, and wait for its undo."),
    "watch": ("chaos.cli.watch.command", "Show a run of another process, or a cluster, in the browser."),
    "judge": ("chaos.cli.judge", "Judge a run or a recording again, without a cluster."),
    "report": ("chaos.cli.report", "Render the report of a run again."),
    "runs": ("chaos.cli.runs.command", "List the stored runs; runs prune deletes old ones."),
    "show": ("chaos.cli.show", "Show the verdicts of a stored run."),
    "trend": ("chaos.cli.trend", "Show how measured durations of an experiment change over its runs."),
    "rbac": ("chaos.cli.rbac", "Print the least permissions that experiments need on a cluster."),
    "sudoers": ("chaos.cli.sudoers", "Print the sudo rules that experiments need on hosts."),
    "windows-rights": ("chaos.cli.windows_rights", "Print the rights that experiments need on Windows hosts."),
    "gameday": ("chaos.cli.gameday.command", "Game days: experiments in a window, behind gates, with one switch."),
    "snapshot": ("chaos.cli.snapshot", "Copy the structure of a cluster into a file, for a lab."),
    "lab": ("chaos.cli.lab.command", "Start and stop the simulated cluster."),
    "kind": ("chaos.cli.kind.command", "Create and delete a cluster of containers with kind."),
    "list": ("chaos.cli.list", "List actions, assertions and facts."),
    "explain": ("chaos.cli.explain", "Explain one action, assertion, fact or time word."),
    "schema": ("chaos.cli.schema", "Print the JSON Schema of experiments, inventories, game days and fleets."),
    "completion": ("chaos.cli.completion", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """The commands of the table :data:`COMMANDS`; each module exposes ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
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


def examples(*lines: str) -> str:
    """The epilog of a command: a section with examples below its help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)

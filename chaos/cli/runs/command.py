"""``nodefall runs``: the stored runs, and ``runs prune``."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from chaos.cli.history_options import complete_experiment, parse_time, reports_option, require_reports
from chaos.cli.lazy import examples

VERDICTS = ("held", "violated", "inconclusive", "aborted", "refused", "interrupted", "running", "no-result", "damaged")


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "nodefall runs",
        "nodefall runs --experiment graceful-poweroff --verdict violated --since 7d",
        "nodefall runs --cluster staging --since 2026-11-01 --until 2026-12-01 --json",
        "nodefall runs prune --keep 20 --older-than 30d --dry-run",
    ),
)
@click.option("--experiment", metavar="NAME", shell_complete=complete_experiment, help="Only runs of this experiment.")
@click.option("--verdict", type=click.Choice(VERDICTS), multiple=True, help="Only runs that ended so. Can be repeated.")
@click.option("--cluster", metavar="NAME", help="Only runs on this cluster: the inventory's name, or its UID's begin.")
@click.option(
    "--since", callback=parse_time, metavar="TIME", help="Only runs that started then or later: 2026-11-21, or 7d."
)
@click.option("--until", callback=parse_time, metavar="TIME", help="Only runs that started before then.")
@reports_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_context
def command(  # noqa: PLR0913, PLR0917 - one per option
    ctx: click.Context,
    experiment: str | None,
    verdict: tuple[str, ...],
    cluster: str | None,
    since: float | None,
    until: float | None,
    reports: Path,
    as_json: bool,
) -> None:
    """List the runs in the reports directory, the newest first.

    Runs that are going on, that were killed or whose files are damaged are listed as such. Times are those of the
    cluster's clock; --since and --until leave out runs whose start is unknown.
    """
    if ctx.invoked_subcommand:
        _refuse_options(ctx)
        return
    from chaos.cli.runs.list_impl import RunFilter, list_runs

    require_reports(reports)
    list_runs(reports, RunFilter(experiment, frozenset(verdict), cluster, since, until), as_json)


def _refuse_options(ctx: click.Context) -> None:
    """Raises UsageError for an option of the list before a subcommand, which would not see it: --reports, say."""
    for parameter in ctx.command.params:
        if parameter.expose_value and ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
            message = f"{parameter.opts[0]} before {ctx.invoked_subcommand!r} has no effect; give options after it"
            raise click.UsageError(message, ctx)


@command.command(
    "prune",
    epilog=examples(
        "nodefall runs prune --keep 20",
        "nodefall runs prune --older-than 30d --dry-run",
        "nodefall runs prune --keep 5 --older-than 90d --yes --json",
    ),
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs of each experiment.")
@click.option("--older-than", metavar="DURATION", help="Delete only runs that started longer ago, as 30d.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@reports_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def prune(keep: int | None, older_than: str | None, dry_run: bool, yes: bool, reports: Path, as_json: bool) -> None:
    """Delete run directories. With --keep and --older-than, those that both allow to delete.

    A run stays if it is going on, if an undo is or may be pending, if the cluster may have a copy of its journal, if it
    is damaged, or if its directory contains what no run writes. The recording, and so `judge` and `report`, go with it.
    """
    from chaos.cli.runs.prune_impl import PruneOptions, prune_runs

    require_reports(reports)
    sys.exit(prune_runs(PruneOptions(reports, keep, older_than, dry_run, yes, as_json)))

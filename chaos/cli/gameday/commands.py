"""Declarations of ``nodefall gameday``: experiments in a window, on a schedule, behind gates."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chaos import __version__
from chaos.cli.complete import DocumentPath, complete_day, complete_day_format, complete_game_day_file
from chaos.cli.gameday.group import (
    by_option,
    fleet_option,
    gameday_argument,
    gameday_command,
    id_option,
    keep_option,
    only_cluster_option,
    report_url_option,
    seed_option,
)
from chaos.cli.lazy import (
    cluster_option,
    command,
    file_option,
    inventory_option,
    json_option,
    plain_option,
    refuse_with_fleet,
    reports_option,
)
from chaos.core.errors import UsageError


@command(
    "nodefall gameday deploy monthly.yaml -i staging.yaml > manifests.yaml",
    "kubectl apply --server-side -f manifests.yaml",
    "nodefall gameday deploy monthly.yaml -i staging.yaml --s3 bucket/staging > manifests.yaml",
    "nodefall gameday deploy monthly.yaml -i staging.yaml --format helm > values.yaml",
    of=gameday_command,
    name="deploy",
)
@gameday_argument
@only_cluster_option
@click.option("--namespace", "-n", default="nodefall", show_default=True, help="The namespace of all objects.")
@click.option("--image", default=f"nodefall:{__version__}", show_default=True, help="From deploy/image/Dockerfile.")
@click.option("--storage", "size", default="1Gi", show_default=True, help="The size of the reports volume.")
@click.option("--storage-class", default="", metavar="NAME", help="Its storage class. Default: the default class.")
@click.option("--s3", default="", metavar="BUCKET/PREFIX", help="Copy the reports to an S3 store every hour.")
@click.option("--secret", default="", metavar="NAME", help="With keys and passwords. Default: nodefall-GAMEDAY.")
@report_url_option
@click.option("--format", "form", type=click.Choice(["manifests", "helm"]), default="manifests", show_default=True)
def deploy_command(**options: Any) -> int:
    """Print the manifests of a CronJob that runs a GAMEDAY on its cluster by its schedule. Applies nothing.

    The documents are taken as they are, so the plan has the same hash everywhere. Keys and passwords to which they
    refer are expected in a Secret, and never read here: stderr says which. The ServiceAccount has exactly the rights
    that nodefall rbac prints. --format helm prints the values of the chart in deploy/helm.

    Exit code: 0 printed; 64 bad input or usage.
    """
    from chaos.cli.gameday.deploy import Options, deploy

    return deploy(Options(**options))


@command(
    "nodefall gameday plan experiments/gamedays/first.yaml",
    "nodefall gameday plan experiments/gamedays/first.yaml -i hosts/lab.yaml --seed 7",
    "nodefall gameday plan monthly.yaml --at 2026-12-20T09:00 --count 12 --json",
    of=gameday_command,
    name="plan",
)
@gameday_argument
@inventory_option("Also plan every run on this cluster.", type=DocumentPath())
@seed_option
@click.option("--at", metavar="TIME", help="Start the calendar here: 2026-12-20T09:00. Default: now.")
@click.option(
    "--count", type=click.IntRange(1, 100), default=5, show_default=True, help="How many openings and starts to show."
)
@reports_option
@json_option
def plan_command(**options: Any) -> int:
    """Show when a GAMEDAY may run, what it would do and how long that takes. No side effects.

    Without an inventory no cluster is asked: targets are shown as they are selected. With one, every run is planned on
    it: its targets, and the exact commands, their proofs and their undo.

    Exit code: 0 planned; 4 some run is refused; 64 bad input or usage.
    """
    from chaos.cli.gameday import plan

    return plan.show_plan(**options)


@command(
    "nodefall gameday report",
    "nodefall gameday report monthly --format md > day.md",
    "nodefall gameday report monthly/2026-12-01 --format review --out review.md",
    "nodefall gameday report --fleet fleet.yaml --format md",
    of=gameday_command,
    name="report",
)
@click.argument("directory", default="last", shell_complete=complete_day)
@click.option(
    "--format", "format_", metavar="NAME", shell_complete=complete_day_format, help="html, md, junit, json or review."
)
@file_option("--out", "Write to this file instead of stdout.")
@reports_option
@file_option("--fleet", "Report on this fleet, from the current state of its clusters.")
@click.pass_context
def report_command(context: click.Context, /, **options: Any) -> int:
    """Render the report of a day again: its DIRECTORY, GAMEDAY/DAY, GAMEDAY (its newest day) or last, the default.

    gameday run writes it into reports/gamedays: verdicts of all entries by cluster, what was learned, calendar and
    timeline, with links to the reports of the runs. Runs on other clusters on the same day are part of it if they were
    written to the same place. The format review is a template for the written review.

    With --fleet the states of all its clusters are read, side by side in one report; recordings stay where they are.

    Without --format all formats are written to the directory, but a review that is there is kept.

    Exit code: 0 rendered; with --fleet that of the worst cluster, as of gameday status.
    """
    from chaos.cli.gameday.fleet import render_report

    return render_report(context, **options)


@command(
    "nodefall gameday run experiments/gamedays/first.yaml",
    "nodefall gameday run monthly.yaml -i staging.yaml --id 2026-12 --yes",
    "nodefall gameday run --fleet fleet.yaml --id 2026-12",
    of=gameday_command,
    name="run",
)
@click.argument("gameday", required=False, shell_complete=complete_game_day_file, type=DocumentPath())
@fleet_option
@only_cluster_option
@reports_option
@seed_option
@id_option
@click.option(
    "--scheduled",
    is_flag=True,
    help="Continue a day that is not finished. Otherwise start one if its schedule has a due start.",
)
@report_url_option
@click.option("--yes", is_flag=True, help="Do not ask before taking real machines down.")
@plain_option
@keep_option
@json_option
def run_command(fleet: Path | None, keep: bool, **options: Any) -> int:
    """Run a GAMEDAY on a cluster, or continue it. Each entry is a run with a report; no entry runs twice.

    The state is on the cluster. Killed or moved to another machine, the same command finishes the undo of what was
    running, and continues. A finished day is only reported: another one begins with another --id. Waits for the window,
    pauses and gates, and prints for what. Ctrl-C undoes and stops; the same command continues.

    With --fleet, as a Job in each of its clusters, which need nothing from here: Ctrl-C ends only the watching, and
    the same command continues with it. nodefall gameday halt --fleet stops the Jobs. What was applied is deleted at the
    end of each, except for the volume with its reports.

    Exit code 0: every expectation of every entry held; 1: one was violated; 2: inconclusive, interrupted, halted, or an
    entry was skipped; 3: an undo is pending; 4: nothing was run.
    """
    from chaos.cli.gameday.run import DayOptions, run_and_report

    if fleet:
        from chaos.cli.gameday.fleet import FleetOptions, run_and_show

        url, source = options.pop("report_url"), click.get_current_context().get_parameter_source("report_url")
        refuse_with_fleet(
            GAMEDAY=options.pop("gameday"),
            **{n: options.pop(n) for n in ("inventory", "seed", "scheduled")},
            **{"report-url": url if source is click.core.ParameterSource.COMMANDLINE else None},
        )
        return run_and_show(FleetOptions(fleet, keep=keep, **options))
    if options["gameday"] is None:
        raise UsageError("missing argument GAMEDAY", hint="or give --fleet FILE")
    if keep:
        raise UsageError("--keep is for --fleet")
    return run_and_report(DayOptions(**options))


@command(
    "nodefall gameday status -i staging.yaml",
    "nodefall gameday status monthly -i staging.yaml --json",
    "nodefall gameday status --fleet fleet.yaml",
    of=gameday_command,
    name="status",
)
@click.argument("gameday", required=False)
@cluster_option
@fleet_option
@json_option
def status_command(gameday: str | None, inventory: str | None, fleet: Path | None, as_json: bool) -> int:
    """Show the game days of a cluster, or GAMEDAY (a name or a file): runs, halts, approvals, and what they wait for.

    With --fleet, a table of its clusters and the entries of the day; a cluster that cannot be read is unknown. Changes
    nothing. Exit code 0: all finished, and held; 1: an entry was violated; 2: a day is not finished, or was
    inconclusive; 3: an undo is pending; 4: nothing of a day was run.
    """
    if fleet:
        from chaos.cli.gameday.fleet import show_status

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory)
        return show_status(fleet, as_json=as_json)
    from chaos.cli.gameday.control import status

    return status(gameday, inventory, as_json)


@command(
    'nodefall gameday halt -i staging.yaml --reason "pager went off"',
    "nodefall gameday halt monthly -i staging.yaml --end --wait 0s",
    'nodefall gameday halt --fleet fleet.yaml --reason "pager went off"',
    "kubectl -n kube-system annotate configmap nodefall-gameday-monthly nodefall.dev/halt=pager",
    of=gameday_command,
    name="halt",
)
@click.argument("gameday", required=False)
@cluster_option
@fleet_option
@click.option("--reason", default="", help="The reason, which everybody sees.")
@by_option
@click.option("--end", "for_good", is_flag=True, help="End the day for good.")
@click.option("--wait", default="10m", show_default=True, metavar="DURATION", help="How long to wait for the undo.")
@keep_option
def halt_command(gameday: str | None, inventory: str | None, fleet: Path | None, keep: bool, **options: Any) -> int:
    """Stop all game days of a cluster, or GAMEDAY (a name or a file), from any machine.

    What is running is undone within seconds, and nothing begins until someone says resume. The last example does the
    same with kubectl, without waiting. With --fleet, in all its clusters at the same time, and no further one begins.

    Exit code 0: nothing is running; 2: the run is still undone, or its process has died; 3: an undo is pending.
    """
    from chaos.cli.gameday.control import HaltOptions, halt_days

    if fleet:
        from chaos.cli.gameday.fleet import halt_all

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory)
        return halt_all(fleet, HaltOptions(**options), keep=keep)
    if keep:
        raise UsageError("--keep is for --fleet")
    return halt_days(gameday, inventory, HaltOptions(**options))


@command(
    'nodefall gameday resume monthly -i staging.yaml --reason "the pager was about something else"',
    of=gameday_command,
    name="resume",
)
@click.argument("gameday", required=False)
@cluster_option
@fleet_option
@click.option("--reason", required=True, help="Why the day may continue.")
@by_option
def resume_command(gameday: str | None, inventory: str | None, fleet: Path | None, reason: str, by: str) -> int:
    """Allow a halted GAMEDAY (a name or a file) to continue. nodefall gameday run then continues it."""
    from chaos.cli.gameday.control import resume_day

    if fleet:
        from chaos.cli.gameday.fleet import resume_all

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory)
        return resume_all(fleet, by, reason)
    return resume_day(gameday, inventory, by, reason)


@command(
    "nodefall gameday approve monthly.yaml -i staging.yaml --day --plan-hash 3f6c0a9b",
    "nodefall gameday approve monthly.yaml -i staging.yaml --entry power-cut --by ada",
    of=gameday_command,
    name="approve",
)
@gameday_argument
@only_cluster_option
@click.option("--entry", metavar="NAME", help="Approve this entry.")
@click.option("--day", "whole", is_flag=True, help="Approve the whole day.")
@click.option("--by", metavar="NAME", help="Who approves, as the gate names them. Default: your login.")
@click.option("--plan-hash", metavar="HASH", default="", help="The (beginning of the) hash of the plan that you read.")
@id_option
def approve_command(entry: str | None, whole: bool, by: str | None, **options: Any) -> int:
    """Approve the plan of a GAMEDAY before it begins or while a gate waits. nodefall records who, when and which plan.

    With another plan, as after a change of the document, an experiment, its manifests or an inventory that it lists,
    the approval does not count.

    Exit code 0: approved; 4: it is the approval of another plan.
    """
    from chaos.cli.gameday.control import ApproveOptions, approve
    from chaos.engine.connection import login

    if bool(entry) == whole:
        raise UsageError("give --day or --entry NAME")
    return approve(ApproveOptions(entry=entry or "", by=by or login(), **options))

"""``nodefall gameday``: experiments in a window, on a schedule, behind gates."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click

from chaos.cli.complete import complete_game_day_file
from chaos.cli.gameday.deploy_command import deploy
from chaos.cli.gameday.fleet_option import refuse_with_fleet
from chaos.cli.gameday.plan_command import plan
from chaos.cli.gameday.report_command import report
from chaos.cli.inventory_option import inventory_option
from chaos.cli.lazy import examples
from chaos.core.errors import UsageError


@click.group(
    epilog=examples(
        "nodefall gameday plan experiments/gamedays/first.yaml",
        "nodefall gameday run experiments/gamedays/first.yaml",
        'nodefall gameday halt -i staging.yaml --reason "pager went off"',
        "nodefall gameday report last",
    )
)
def command() -> None:
    """Game days: several experiments in a window, behind gates, with one switch that stops everything."""


command.add_command(deploy)
command.add_command(plan)
command.add_command(report)


_INVENTORY = inventory_option("The cluster; there is no default. [env: NODEFALL_INVENTORY]")
_BY = click.option("--by", metavar="NAME", help="Who does it. Default: login@machine.")
_KEEP = click.option("--keep", is_flag=True, help="Of a fleet: do not delete what was applied in its clusters.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
_FLEET = click.option(
    "--fleet", type=click.Path(path_type=Path, dir_okay=False), help="All clusters of this fleet, instead of one."
)
_ID = click.option("--id", "id_", metavar="NAME", default="", help="Name of the day. Default: its date.")


@command.command(
    "run",
    epilog=examples(
        "nodefall gameday run experiments/gamedays/first.yaml",
        "nodefall gameday run monthly.yaml -i staging.yaml --id 2026-12 --yes",
        "nodefall gameday run --fleet fleet.yaml --id 2026-12",
    ),
)
@click.argument("gameday", required=False, shell_complete=complete_game_day_file, type=click.Path(path_type=Path))
@_FLEET
@inventory_option("The cluster. Default: the only one of the game day. [env: NODEFALL_INVENTORY]")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the day: the same seeds of its runs again.")
@_ID
@click.option(
    "--scheduled",
    is_flag=True,
    help="Go on with a day that is not finished; else begin one if a start of its schedule is due.",
)
@click.option("--yes", is_flag=True, help="Do not ask before taking real machines down.")
@click.option("--plain", is_flag=True, help="Plain progress lines, also on a terminal.")
@_KEEP
@_JSON
def run(  # noqa: PLR0913, PLR0917 - one per option
    gameday: Path | None,
    fleet: Path | None,
    inventory: str | None,
    reports: Path,
    seed: int | None,
    id_: str,
    scheduled: bool,
    yes: bool,
    plain: bool,
    keep: bool,
    as_json: bool,
) -> int:
    """Run a GAMEDAY on a cluster, or go on with it: each entry is a run with a report, none is run twice.

    The state is on the cluster. Killed or moved to another machine, the same command finishes the undo of what was
    running, and goes on. A finished day is only reported: another one begins with another --id. Waits for the window,
    pauses and gates, and prints for what. Ctrl-C undoes and stops; the same command goes on.

    With --fleet, as a Job in each of its clusters, which need nothing from here: Ctrl-C ends only the watching, and
    the same command goes on with it. nodefall gameday halt --fleet stops the Jobs. What was applied is deleted at the
    end of each, but for the volume with its reports.

    Exit code 0: every expectation of every entry held; 1: one was violated; 2: inconclusive, interrupted, halted, or an
    entry was skipped; 3: an undo is pending; 4: nothing was run.
    """
    from chaos.cli.gameday.run_impl import DayOptions, run_and_report

    if fleet:
        from chaos.cli.gameday.fleet_impl import FleetOptions, run_and_show

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory, seed=seed, scheduled=scheduled)
        return run_and_show(FleetOptions(fleet, reports, id_, yes, plain, keep, as_json))
    if gameday is None:
        raise UsageError("missing argument GAMEDAY", hint="or give --fleet FILE")
    if keep:
        raise UsageError("--keep is for --fleet")
    return run_and_report(DayOptions(gameday, inventory, reports, seed, id_, scheduled, yes, plain, as_json))


@command.command(
    "status",
    epilog=examples(
        "nodefall gameday status -i staging.yaml",
        "nodefall gameday status monthly -i staging.yaml --json",
        "nodefall gameday status --fleet fleet.yaml",
    ),
)
@click.argument("gameday", required=False)
@_INVENTORY
@_FLEET
@_JSON
def status(gameday: str | None, inventory: str | None, fleet: Path | None, as_json: bool) -> int:
    """Show the game days of a cluster, or GAMEDAY (a name or a file): runs, halts, approvals, what they wait for.

    With --fleet, a table of its clusters and the entries of the day; a cluster that cannot be read is unknown. Changes
    nothing. Exit code 0: all finished, and held; 1: an entry was violated; 2: a day is not finished, or was
    inconclusive; 3: an undo is pending; 4: nothing of a day was run.
    """
    if fleet:
        from chaos.cli.gameday.fleet_impl import show_status

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory)
        return show_status(fleet, as_json=as_json)
    from chaos.cli.gameday.control import status

    return status(gameday, inventory, as_json)


@command.command(
    "halt",
    epilog=examples(
        'nodefall gameday halt -i staging.yaml --reason "pager went off"',
        "nodefall gameday halt monthly -i staging.yaml --end --wait 0s",
        'nodefall gameday halt --fleet fleet.yaml --reason "pager went off"',
        "kubectl -n kube-system annotate configmap nodefall-gameday-monthly nodefall.dev/halt=pager",
    ),
)
@click.argument("gameday", required=False)
@_INVENTORY
@_FLEET
@click.option("--reason", default="", help="Reason that everybody sees.")
@_BY
@click.option("--end", "for_good", is_flag=True, help="For good: what has not begun never does.")
@click.option("--wait", default="10m", show_default=True, metavar="DURATION", help="How long to wait for its undo.")
@_KEEP
def halt(  # noqa: PLR0913, PLR0917 - one per option
    gameday: str | None,
    inventory: str | None,
    fleet: Path | None,
    reason: str,
    by: str | None,
    for_good: bool,
    wait: str,
    keep: bool,
) -> int:
    """Stop all game days of a cluster, or GAMEDAY (a name or a file), from any machine.

    What is running is undone within seconds, and nothing begins until somebody says resume. The last example does the
    same with kubectl, without waiting. With --fleet, in all its clusters at the same time, and no further one begins.

    Exit code 0: nothing is running; 2: the run is still undone, or its process has died; 3: an undo is pending.
    """
    from chaos.cli.gameday.control import HaltOptions, halt_days
    from chaos.cli.gameday.run_impl import who

    if fleet:
        from chaos.cli.gameday.fleet_impl import halt_all

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory)
        return halt_all(fleet, HaltOptions(reason, by or who(), wait, for_good), keep=keep)
    if keep:
        raise UsageError("--keep is for --fleet")
    return halt_days(gameday, inventory, HaltOptions(reason, by or who(), wait, for_good))


@command.command(
    "resume",
    epilog=examples('nodefall gameday resume monthly -i staging.yaml --reason "the pager was about something else"'),
)
@click.argument("gameday", required=False)
@_INVENTORY
@_FLEET
@click.option("--reason", required=True, help="Why it may go on.")
@_BY
def resume(gameday: str | None, inventory: str | None, fleet: Path | None, reason: str, by: str | None) -> int:
    """Let a halted GAMEDAY (a name or a file) go on: with nodefall gameday run, which starts it again."""
    from chaos.cli.gameday.control import resume_day
    from chaos.cli.gameday.run_impl import who

    if fleet:
        from chaos.cli.gameday.fleet_impl import resume_all

        refuse_with_fleet(GAMEDAY=gameday, inventory=inventory)
        return resume_all(fleet, by or who(), reason)
    return resume_day(gameday, inventory, by or who(), reason)


@command.command(
    "approve",
    epilog=examples(
        "nodefall gameday approve monthly.yaml -i staging.yaml --day --plan-hash 3f6c0a9b",
        "nodefall gameday approve monthly.yaml -i staging.yaml --entry power-cut --by ada",
    ),
)
@click.argument("gameday", shell_complete=complete_game_day_file, type=click.Path(path_type=Path))
@inventory_option("The cluster. Default: the only one of the game day. [env: NODEFALL_INVENTORY]")
@click.option("--entry", metavar="NAME", help="Approve this entry.")
@click.option("--day", "whole", is_flag=True, help="Approve the whole day.")
@click.option("--by", metavar="NAME", help="Who approves, as the gate names that person. Default: your login.")
@click.option("--plan-hash", metavar="HASH", default="", help="That of the plan that was read, or its beginning.")
@_ID
def approve(
    gameday: Path, inventory: str | None, entry: str | None, whole: bool, by: str | None, plan_hash: str, id_: str
) -> int:
    """Approve the plan of a GAMEDAY, before it begins or while a gate waits. Recorded: who, when, which plan.

    With another plan, as after a change of the document, an experiment, its manifests or an inventory that it lists,
    the approval does not count.

    Exit code 0: approved; 4: it is the approval of another plan.
    """
    from chaos.cli.gameday.approve_impl import ApproveOptions, approve
    from chaos.engine.connection import login

    if bool(entry) == whole:
        raise UsageError("give --day or --entry NAME")
    return approve(ApproveOptions(gameday, inventory, entry or "", by or login(), plan_hash, id_))

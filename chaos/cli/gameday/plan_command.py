"""``nodefall gameday plan``: when a game day may run, and what it would do."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from chaos.cli.complete import complete_game_day_file
from chaos.cli.inventory_option import inventory_option
from chaos.cli.lazy import examples
from chaos.cli.output import echo
from chaos.core.errors import Exit, UsageError


@click.command(
    "plan",
    epilog=examples(
        "nodefall gameday plan experiments/gamedays/first.yaml",
        "nodefall gameday plan experiments/gamedays/first.yaml -i hosts/lab.yaml --seed 7",
        "nodefall gameday plan monthly.yaml --at 2026-12-20T09:00 --count 12 --json",
    ),
)
@click.argument("gameday", shell_complete=complete_game_day_file, type=click.Path(path_type=Path))
@inventory_option("Also plan every run on this cluster, as nodefall plan.", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the day: the same seeds of its runs again.")
@click.option("--at", metavar="TIME", help="Show the calendar from then on, as 2026-12-20T09:00. Default: now.")
@click.option("--count", type=click.IntRange(1, 100), default=5, show_default=True, help="Openings and starts to show.")
@click.option("--reports", type=click.Path(path_type=Path), default=Path("reports"), show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def plan(
    gameday: Path,
    inventory: Path | None,
    seed: int | None,
    at: str | None,
    count: int,
    reports: Path,
    as_json: bool,
) -> int:
    """Show when a GAMEDAY may run, what it would do and how long that takes. No side effects.

    Without an inventory no cluster is asked: targets are shown as they are selected. With one, every run is planned on
    it: its targets, and the exact commands, their proofs and their undo.

    Exit code: 0 planned; 4 some run is refused; 64 bad input or usage.
    """
    from chaos.app.gameday import current_time, load_game_day, new_seed, outline, plan_runs
    from chaos.app.registry import load_registry
    from chaos.cli.gameday.plan_text import render_outline, render_run, to_json

    registry = load_registry()
    moment = _parse_moment(at) if at else current_time()
    day = load_game_day(gameday, registry)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=day.zone)
    shown = outline(day, moment, count, new_seed() if seed is None else seed)
    runs = plan_runs(day, inventory, registry, shown.seed, reports) if inventory else iter(())
    if as_json:
        planned = list(runs)
        click.echo(to_json(shown, planned if inventory else None))
    else:
        echo(*render_outline(shown))
        planned = []
        for run in runs:  # planning takes seconds each: show one as soon as it is known
            planned.append(run)
            echo(*render_run(run))
    return Exit.REFUSED if any(run.refused for run in planned) else Exit.HELD


def _parse_moment(text: str) -> datetime:
    """An ISO 8601 time; without an offset it is in the zone of the window. Raises UsageError."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--at: invalid time {text!r}", hint="write it like 2026-12-20T09:00, or ...Z for UTC"
        ) from None

"""``nodefall compare``: what really happened, beside what was predicted or happened before."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from pathlib import Path

import click

from chaos.cli.history_options import complete_run, reports_option, require_reports
from chaos.cli.lazy import examples
from chaos.cli.rehearsal_options import jobs_option, out_option, quiet_option, seed_option, snapshot_option


@click.command(
    epilog=examples(
        "nodefall compare last --snapshot staging.snapshot.gz",
        "nodefall compare last --prediction rehearsal/prediction.json",
        "nodefall compare graceful-poweroff --with graceful-poweroff/20261121T033533Z",
        "nodefall compare before.jsonl.gz after.jsonl.gz --json",
        "nodefall compare recording.jsonl.gz --out comparison",
    )
)
@click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)
@snapshot_option("Rehearse the experiment of RUN on copies of this cluster, with the victims that it had.")
@click.option(
    "--with", "other", metavar="RUN", shell_complete=complete_run, help="Compare with this run, or recording."
)
@click.option(
    "--prediction",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare with the prediction.json of nodefall rehearse --out.",
)
@click.option(
    "--seeds", type=click.IntRange(2, 10_000), default=20, show_default=True, metavar="N", help="Of rehearsals."
)
@seed_option
@click.option("--other-victims", is_flag=True, help="Compare runs although their victims are other nodes.")
@out_option("Write comparison.html, comparison.md and comparison.json.")
@jobs_option
@quiet_option
@reports_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
def command(  # noqa: PLR0913, PLR0917 - one per option
    names: tuple[str, ...],
    snapshot: Path | None,
    other: str | None,
    prediction: Path | None,
    seeds: int,
    seed: int,
    other_victims: bool,
    out: Path | None,
    jobs: int | None,
    quiet: bool,
    reports: Path,
    as_json: bool,
) -> None:
    """Compare a RUN with what was predicted, with another run, or a series of runs, each with those before it.

    RUN is a run directory, EXPERIMENT/STAMP, EXPERIMENT or last for the newest, or a recording (*.jsonl.gz). A single
    one without an option is compared with what the lab predicts from its own first lists. The first line is what
    surprises most. docs/compare.md describes when a time counts as predicted.

    Exit code 0: everything lies in its band; 1: something differs; 2: it cannot be compared; 64: bad input or usage.
    """
    from chaos.cli.compare.compare_impl import check_sources, compare_and_report
    from chaos.rehearsal.comparisons import CompareOptions

    check_sources(len(names), {"--snapshot": snapshot, "--with": other, "--prediction": prediction})
    require_reports(reports)
    numbers = tuple(range(seed, seed + seeds))
    options = CompareOptions(names, reports, snapshot, other or "", prediction, numbers, jobs, other_victims)
    sys.exit(compare_and_report(options, out, quiet=quiet, as_json=as_json))

"""``nodefall judge``: judge an experiment on a recording or a finished run, without a cluster."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli.complete import complete_experiment_file, complete_target
from chaos.cli.experiment_argument import ExperimentPath
from chaos.cli.output import echo

if TYPE_CHECKING:
    from chaos.core.result import RunResult, StepResult
    from chaos.reports.run.verdicts import Row

EPILOG = """\b
Examples:
  nodefall judge recording.jsonl.gz experiments/graceful-poweroff.yaml
  nodefall judge reports/graceful-poweroff/20261121T033533Z experiments/graceful-poweroff.yaml --json
  nodefall judge power-cut.jsonl.gz experiments/graceful-poweroff.yaml --map power-off=power-cut
  nodefall judge rec.jsonl.gz my.yaml --bind victim=worker-1 --bind workload=demo --fact kubelet.shutdownGracePeriod=30s
"""


@click.command(epilog=EPILOG)
@click.argument("recording", type=click.Path(path_type=Path))
@click.argument("experiment", shell_complete=complete_experiment_file, type=ExperimentPath())
@click.option(
    "--bind",
    multiple=True,
    metavar="TARGET=NODE",
    shell_complete=complete_target,
    help="Bind a target to a node; workload=NAMESPACE, too.",
)
@click.option("--map", "steps", multiple=True, metavar="STEP=ACTION", help="Match a step with the recorded ACTION.")
@click.option("--fact", multiple=True, metavar="NAME=VALUE", help="Use this value of a fact.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="Write all reports to this directory.")
def command(
    recording: Path,
    experiment: Path,
    bind: tuple[str, ...],
    steps: tuple[str, ...],
    fact: tuple[str, ...],
    as_json: bool,
    report: Path | None,
) -> None:
    """Judge an EXPERIMENT on a RECORDING (a file or a run directory).

    Exit code: 0 every expectation held, 1 one was violated, 2 inconclusive.
    """
    import msgspec

    from chaos.api import judge

    mapped, facts = dict(_pairs("--map", steps)), dict(_pairs("--fact", fact))
    judged = judge(recording, experiment, bind=_lists("--bind", bind), steps=mapped, facts=facts)
    result = judged.result
    if report:
        report.mkdir(parents=True, exist_ok=True)
        judged.write(report)
        click.echo(f"report: {report}", err=True)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        echo(*_lines(result))
    sys.exit(result.exit_code)


def _lists(option: str, values: tuple[str, ...]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for name, value in _pairs(option, values):
        lists.setdefault(name, []).append(value)
    return lists


def _pairs(option: str, values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    from chaos.core.errors import UsageError

    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text}: not of the form NAME=VALUE")
        yield name, value


def _lines(result: RunResult) -> Iterator[str]:
    """The headline, the steps with their proofs, and every verdict."""
    from chaos.core.text import printable
    from chaos.reports.run.verdicts import notes, rows

    yield printable(result.headline) + (" (simulated cluster)" if result.simulated else "")
    yield from ("", "steps")
    yield from (_step(step) for step in result.steps)
    titles = {"steady": "steady state", "abort": "abort conditions"}
    for key, section in rows(result).items():
        yield from ("", titles.get(key, key))
        yield from (_verdict(row) for row in section)
    if found := notes(result):
        yield from ("", *(f"note: {printable(note)}" for note in found))


def _step(step: StepResult) -> str:
    from chaos.core.text import printable

    shown = f"weakly {step.proof_status.value}" if step.weak else step.proof_status.value
    where = f" on {step.node}" if step.node else ""
    return f"  {shown:<12} {step.step}: {step.action}{where}: {printable(step.because)}"


def _verdict(row: Row) -> str:
    from chaos.core.text import printable

    verdict = row.verdict
    line = f"  {verdict.status.value:<12} {printable(verdict.name)}: {printable(row.because)}"
    return line + (f" (assumed: {', '.join(verdict.assumed_facts)})" if verdict.assumed_facts else "")

"""A series of ordinary runs."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from typing import Any

from chaos.cli.app import TerminationSignal
from chaos.cli.output import echo_document, free_finished_run, print_error, tune_gc
from chaos.cli.run.run import OutputOptions, RunOptions, load_inputs, run_once
from chaos.core.errors import Exit, NodefallError, UsageError
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.core.store.run_history import read_run
from chaos.core.text import printable
from chaos.engine.load import LoadedExperiment
from chaos.reports.history.series import Series, SeriesRun, derived_seed, endings, gravest, series_text, stop_reason
from chaos.reports.history.trend import expectation_trends
from chaos.reports.history.trend_text import expectations_document
from chaos.reports.run import json_


def run_series(options: RunOptions, count: int, output: OutputOptions) -> int:
    """Run ``count`` times or until a run must not be followed by another; print the distribution; the exit code.

    Raises NodefallError if the first run did not begin.
    """
    refused = {"--plan": options.plan, "--record": options.record, "--serve": options.serve}
    for name in (name for name, value in refused.items() if value):
        raise UsageError(
            f"--repeat cannot be combined with {name}",
            hint="give the experiment; each run has its recording in its directory, which nodefall watch shows",
        )
    tune_gc()
    experiment, inventory = load_inputs(options)
    first = secrets.randbits(32) if options.seed is None else options.seed
    collector = _Collector(output)
    failure: NodefallError | KeyboardInterrupt | None = None
    try:
        for index in _indexes(count, collector):
            seed = derived_seed(first, index)
            if not output.quiet:
                print_error(f"run {index + 1} of {count}, seed {seed}\n")
            collector.add(options, experiment, inventory, seed, f"{index + 1} of {count}")
    except (NodefallError, KeyboardInterrupt) as error:
        if not collector.runs:
            raise
        failure = error
    series = _series(count, first, collector, failure)
    if not output.as_json:
        return echo_document(series_text(series, sys.stdout.encoding or "utf-8"), series.exit_code)
    if not output.quiet:
        print_error(series_text(series, sys.stderr.encoding or "utf-8"))
    document = json.dumps(_document(series, collector.documents), indent=2, sort_keys=True)
    return echo_document(f"{document}\n", series.exit_code)


class _Collector:
    """The runs so far; of a timeline only its JSON is left, as each may be large."""

    def __init__(self, output: OutputOptions) -> None:
        self.runs: list[SeriesRun] = []
        self.documents: list[dict[str, Any]] = []
        self._output = output

    def add(
        self,
        options: RunOptions,
        experiment: Plan | LoadedExperiment,
        inventory: Inventory,
        seed: int,
        position: str,
    ) -> None:
        """Run once. Raises NodefallError."""
        done = run_once(options, experiment, inventory, seed, self._output, series=position)
        self.runs.append(SeriesRun(seed, read_run(done.directory), done.result))
        if self._output.as_json:
            self.documents.append(json.loads(json_.render(done.result, done.timeline)))
        if not self._output.quiet:
            print_error(f"{printable(done.result.headline)}; report: {printable(str(done.report))}\n\n")


def _indexes(count: int, collector: _Collector) -> Iterator[int]:
    """0 to ``count`` - 1, up to a run that must not be followed by another."""
    for index in range(count):
        yield index
        if stop_reason(collector.runs[-1].result):
            return
        free_finished_run()


def _series(
    count: int,
    seed: int,
    collector: _Collector,
    failure: NodefallError | KeyboardInterrupt | None,
) -> Series:
    runs = tuple(collector.runs)
    codes = [run.result.exit_code for run in runs]
    stopped = stop_reason(runs[-1].result) if len(runs) < count else ""
    if isinstance(failure, NodefallError):
        codes.append(int(failure.code))
        stopped = f"{failure.message} ({failure.hint})" if failure.hint else failure.message
    elif failure:
        codes.append(int(Exit.SIGTERM if isinstance(failure, TerminationSignal) else Exit.SIGINT))
        stopped = "interrupted"
    return Series(runs[0].result.experiment, count, seed, runs, gravest(codes), stopped)


def _document(series: Series, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """One object: the series, the durations of each expectation, and the whole result of every run."""
    return {
        "experiment": series.experiment,
        "requested": series.requested,
        "seed": series.seed,
        "exit_code": series.exit_code,
        "stopped": series.stopped,
        "verdicts": endings(series.runs),
        "expectations": expectations_document(expectation_trends([run.result for run in series.runs])),
        "runs": [
            {"seed": run.seed, "directory": str(run.stored.directory), "verdict": run.result.ending, "result": document}
            for run, document in zip(series.runs, documents, strict=True)
        ],
    }

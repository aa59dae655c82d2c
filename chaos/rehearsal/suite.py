"""Several experiments, each on its own simulated cluster, in forked processes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from chaos.engine.registry import load_facts
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.forecast.suite import Suite, row_of, suite_of
from chaos.rehearsal.many import Rehearsals, ReportSample
from chaos.rehearsal.processes import run_forked

_VERDICT = "nodefall.dev/verdict"
_DEFAULT_VERDICT = "held"


@dataclass(frozen=True, slots=True)
class Part:
    """One experiment. ``lab``: the name of what it runs on."""

    rehearsals: Rehearsals
    lab: str

    @property
    def expected(self) -> str:
        """How a run of it ends, by its annotation; held without one."""
        annotations = self.rehearsals.loaded.experiment.metadata.annotations
        return annotations.get(_VERDICT, _DEFAULT_VERDICT)


def rehearse_suite(parts: Sequence[Part], seeds: Sequence[int], jobs: int, report: ReportSample) -> Suite:
    """Run each experiment with each seed, at most ``jobs`` at a time; ``report`` is called with each run as it ends."""
    load_facts()  # imported once, and not in each process
    tasks = [(index, seed) for index in range(len(parts)) for seed in seeds]

    def work(task: tuple[int, int]) -> bytes:
        index, seed = task
        return parts[index].rehearsals.run_seed(seed)

    samples: dict[tuple[int, int], Sample] = {}
    with closing(run_forked(tasks, work, jobs)) as results:
        for number, text in results:
            samples[tasks[number]] = sample = pickle.loads(text)  # noqa: S301 - of our own process
            report(sample)
    rows = []
    for index, part in enumerate(parts):
        loaded = part.rehearsals.loaded
        name, ended = loaded.experiment.metadata.name, [samples[index, seed] for seed in seeds]
        rows.append(row_of(str(loaded.path), name, part.lab, part.expected, ended))
    return suite_of(rows, seeds)

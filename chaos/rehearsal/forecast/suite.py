"""Several experiments, each on the simulated cluster that it names: which ended otherwise than expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from chaos.core.errors import Exit
from chaos.rehearsal.forecast.sample import Sample
from chaos.reports.run.outline import SIMULATED
from chaos.reports.tables import plain, text_table

FORMAT = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added
_NAMED = 5
_DECIDED = ("held", "violated")


class Unexpected(Struct, frozen=True):
    """A run that ended otherwise. ``why``: its headline, or why it was refused."""

    seed: int
    ending: str
    why: str


class SuiteRow(Struct, frozen=True):
    """The runs of one experiment. ``lab``: what it ran on. ``endings``: number of runs by how they ended."""

    file: str
    experiment: str
    lab: str
    expected: str
    endings: dict[str, int]
    unexpected: tuple[Unexpected, ...] = ()


class Suite(Struct, frozen=True, rename="camel"):
    """``exit_code``: 0 if every run ended as expected; 1 if one held or was violated against that; else 2."""

    seeds: tuple[int, ...]
    headline: str
    exit_code: int
    experiments: tuple[SuiteRow, ...]
    simulated: bool = True
    format: int = FORMAT


def row_of(file: str, experiment: str, lab: str, expected: str, samples: Sequence[Sample]) -> SuiteRow:
    """What the samples of one experiment show."""
    unexpected = [
        Unexpected(sample.seed, sample.ending, sample.result.headline if sample.result else sample.refused)
        for sample in samples
        if sample.ending != expected
    ]
    endings = dict(sorted(Counter(sample.ending for sample in samples).items()))
    return SuiteRow(file, experiment, lab, expected, endings, tuple(unexpected))


def suite_of(rows: Sequence[SuiteRow], seeds: Sequence[int]) -> Suite:
    """All rows together."""
    endings = [run.ending for row in rows for run in row.unexpected]
    code = Exit.VIOLATED if set(endings) & set(_DECIDED) else Exit.INCONCLUSIVE if endings else Exit.HELD
    return Suite(tuple(seeds), _headline(rows), int(code), tuple(rows))


def render_suite(suite: Suite) -> str:
    """The document, the same bytes for the same suite."""
    return msgspec.json.format(msgspec.json.encode(suite, order="deterministic"), indent=2).decode() + "\n"


def suite_text(suite: Suite) -> list[str]:
    """The lines for a terminal, the most important one first."""
    rows = [(row.experiment, row.lab, row.expected, _counts(row)) for row in suite.experiments]
    seeds = f"{len(suite.seeds)} seeds" if len(suite.seeds) > 1 else f"seed {suite.seeds[0]}"
    lines = [suite.headline, "", *text_table(plain("experiment", "lab", "expected", seeds), rows), ""]
    for row in suite.experiments:
        lines += [f"{row.experiment}, seed {run.seed}: {run.why or run.ending}" for run in row.unexpected]
    return [*lines, SIMULATED]


def _headline(rows: Sequence[SuiteRow]) -> str:
    wrong = [row.experiment for row in rows if row.unexpected]
    if not wrong:
        return f"all {len(rows)} experiments ended as expected"
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return f"{len(wrong)} of {len(rows)} experiments ended otherwise than expected: {', '.join(wrong[:_NAMED])}{more}"


def _counts(row: SuiteRow) -> str:
    if sum(row.endings.values()) == 1:
        return next(iter(row.endings))
    return ", ".join(f"{count} {ending}" for ending, count in row.endings.items())

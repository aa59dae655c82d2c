"""The results of ``nodefall rehearse``: what reports show, ``--json`` prints, and their first lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from chaos.core.duration import format_duration
from chaos.core.errors import Exit
from chaos.core.moments import rounded
from chaos.core.result import RunResult
from chaos.core.verdict import Status
from chaos.rehearsal.forecast.ranking import Risk, VictimRank, expectation_bands, rank_victims, risks_of
from chaos.rehearsal.forecast.sample import FindingKind, Sample, limits_of
from chaos.reports.run.outline import SIMULATED
from chaos.reports.tables import plain, text_table
from chaos.verdicts.outcome.prediction import Band, ExpectationBand, bands

VERSION = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added
_FORMER_KEYS = {
    "exitCode": "exit_code", "experimentHash": "experiment_hash", "snapshotHash": "snapshot_hash", "format": "version",
}  # fmt: skip
_GRAVITY = (Exit.VIOLATED, Exit.REFUSED, Exit.INCONCLUSIVE, Exit.HELD)


class Runs(Struct, frozen=True):
    """Runs on one cluster. ``changes``: how it differs from the snapshot.

    ``endings``: number of runs by how they ended. ``refused``: why runs had no fault, with their number.
    ``measures``: times after the fault over all runs.
    """

    changes: tuple[str, ...]
    endings: dict[str, int]
    refused: dict[str, int]
    expectations: tuple[ExpectationBand, ...]
    risks: tuple[Risk, ...]
    measures: tuple[Band, ...]
    victims: tuple[VictimRank, ...] = ()

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(self.endings.values())


class Rehearsal(Struct, frozen=True):
    """``runs``: on the cluster as asked for; ``without``: the same before the changes of ``--what-if``.

    ``snapshot_hash``: SHA-256 of the snapshot, "" for the simulated cluster of the experiment or of an inventory.
    """

    experiment: str
    title: str
    experiment_hash: str
    snapshot: str
    snapshot_hash: str
    kubernetes: str
    seeds: tuple[int, ...]
    each: str  # node, zone, or ""
    exit_code: int
    headline: str
    runs: Runs
    without: Runs | None
    limits: tuple[str, ...]
    simulated: bool = True
    version: int = VERSION


class Victims(Struct, frozen=True):
    """What victims consist of: nodes and zone by name of the victim."""

    nodes: Mapping[str, tuple[str, ...]] = {}
    zones: Mapping[str, str] = {}


def summarize(samples: Sequence[Sample], changes: Sequence[str], victims: Victims) -> Runs:
    """What the samples on one cluster show together."""
    refused = Counter(sample.refused for sample in samples if sample.refused)
    outcomes = [sample.outcome for sample in samples if sample.outcome]
    return Runs(
        tuple(changes),
        dict(sorted(Counter(sample.ending for sample in samples).items())),
        dict(refused.most_common()),
        expectation_bands(samples),
        tuple(risks_of(samples)),
        () if victims.nodes else tuple(bands(outcomes).values()),
        tuple(rank_victims(samples, victims.nodes, victims.zones)) if victims.nodes else (),
    )


def exit_code_of(samples: Sequence[Sample]) -> int:
    """The gravest of the runs: 1 violated, 4 refused, 2 inconclusive, aborted or not undone, 0 held.

    With victims, a refusal of some of them counts as inconclusive: the others have an answer.
    """
    codes = {_code(sample.result) for sample in samples}
    if Exit.REFUSED in codes and len(codes) > 1:
        codes = {Exit.INCONCLUSIVE if code == Exit.REFUSED else code for code in codes}
    return int(next((code for code in _GRAVITY if code in codes), Exit.INCONCLUSIVE))


def _code(result: RunResult | None) -> Exit:
    """The exit code of a run, of which a pending undo hides the verdict."""
    if result is None:
        return Exit.REFUSED
    if result.status is Status.VIOLATED:
        return Exit.VIOLATED
    return next((code for code in _GRAVITY if code == result.exit_code), Exit.INCONCLUSIVE)


def render_json(found: Rehearsal | Suite) -> str:
    """The document, the same bytes for the same results; durations to the microsecond.

    The keys of 0.2.0 that have been renamed are there, too; they are deprecated.
    """
    document = rounded(msgspec.to_builtins(found, str_keys=True))
    document |= {former: document[key] for former, key in _FORMER_KEYS.items() if key in document}
    return format_document(document)


def format_document(document: Any) -> str:
    """JSON types as text, the same bytes for the same document."""
    return msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2).decode() + "\n"


def limits(missing: Sequence[str], samples: Sequence[Sample]) -> tuple[str, ...]:
    """What the answer does not cover."""
    return tuple(limits_of(missing, samples))


_VERBS = {
    FindingKind.NO_REPLICA_LEFT: "loses all {count} pods at once",
    FindingKind.SINGLE_REPLICA: "loses its only pod",
    FindingKind.POD_LOST: "is lost, and nothing replaces it",
    FindingKind.NO_ROOM: "has {count} pods for which there is no room",
    FindingKind.BUDGET_OVERDRAWN: "is a budget overdrawn by {count}",
    FindingKind.STUCK_TERMINATING: "has {count} pods stuck Terminating",
    FindingKind.VOLUME_WAIT: "waits for a volume",
    FindingKind.EVICTION_DELAYED: "is evicted late or not at all",
}


def headline(runs: Runs, each: str) -> str:
    """One sentence. ``each``: node or zone, "" without victims."""
    if runs.victims:
        return _of_victims(runs, each)
    if runs.risks:
        return _of_risk(runs.risks[0])
    if worst := _worst(runs.expectations):
        return f"violated{_share(worst.verdicts['violated'], runs.count)}: {worst.name}"
    if runs.refused:
        reason = next(iter(runs.refused))  # the most frequent one
        return f"refused{_share(sum(runs.refused.values()), runs.count)}: {reason}"
    held = runs.endings.get("held", 0)
    if held == runs.count:
        known = sum("known" in each.verdicts for each in runs.expectations)
        but = f" but {known} violated as known" if known else ""
        return f"every expectation{but} held, and no workload was without a serving pod{_share(held, runs.count)}"
    ending = max((count, name) for name, count in runs.endings.items() if name != "held")
    return f"{ending[1]}{_share(ending[0], runs.count)}: no workload was without a serving pod"


def _of_risk(risk: Risk) -> str:
    length = f" for {format_duration(round(risk.p50))}" if risk.p50 else ""
    lasting = " and to the end of the run" if risk.lasting else ""
    verb = _VERBS[risk.kind].format(count=risk.count).replace("has 1 pods", "has a pod")
    return f"{risk.subject} {verb}{length}{lasting}{_share(risk.runs, risk.of)}"


def _of_victims(runs: Runs, each: str) -> str:
    first = runs.victims[0]
    if first.refused:
        return f"no {each} can be the victim: {first.refused}"
    lost = [rank for rank in runs.victims if not rank.refused]
    refused, hurt = len(runs.victims) - len(lost), sum(rank.score > 0 for rank in lost)
    others = f"; {refused} cannot be the victim" if refused else ""
    if not hurt:
        violated = sum("violated" in rank.endings for rank in lost)
        verdict = f", but the experiment is violated with {violated}" if violated else ""
        return f"no {each} hurts: every workload keeps a serving pod, whichever of {len(lost)} is lost{verdict}{others}"
    name = f"zone {first.victim}" if each == "zone" else first.victim
    return f"{name} hurts most: {first.why} ({hurt} of {len(lost)} {each}s hurt{others})"


def _worst(expectations: Sequence[ExpectationBand]) -> ExpectationBand | None:
    violated = [each for each in expectations if each.verdicts.get("violated")]
    return max(violated, key=lambda each: each.verdicts["violated"], default=None)


def _share(count: int, of: int) -> str:
    return f" in {count} of {of} runs" if of > 1 else ""


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


class Suite(Struct, frozen=True):
    """``exit_code``: 0 if every run ended as expected; 1 if one held or was violated against that; otherwise 2."""

    seeds: tuple[int, ...]
    headline: str
    exit_code: int
    experiments: tuple[SuiteRow, ...]
    simulated: bool = True
    version: int = VERSION


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

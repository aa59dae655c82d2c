"""The result of ``nodefall rehearse``: what reports show, and ``--json`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from chaos.core.errors import Exit
from chaos.core.result import RunResult
from chaos.core.verdict import Status
from chaos.rehearsal.forecast.limits import limits_of
from chaos.rehearsal.forecast.ranking import VictimRank, rank_victims
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.forecast.summary import Risk, expectation_bands, risks_of
from chaos.verdicts.outcome.prediction import Band, ExpectationBand, bands

FORMAT = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added
_GRAVITY = (Exit.VIOLATED, Exit.REFUSED, Exit.INCONCLUSIVE, Exit.HELD)


class Runs(Struct, frozen=True, rename="camel"):
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


class Rehearsal(Struct, frozen=True, rename="camel"):
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
    format: int = FORMAT


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


def render_json(rehearsal: Rehearsal) -> str:
    """The document, the same bytes for the same rehearsal."""
    return msgspec.json.format(msgspec.json.encode(rehearsal, order="deterministic"), indent=2).decode() + "\n"


def limits(missing: Sequence[str], samples: Sequence[Sample]) -> tuple[str, ...]:
    """What the answer does not cover."""
    return tuple(limits_of(missing, samples))

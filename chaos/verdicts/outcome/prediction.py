"""Bands of measures over the outcomes of many seeds, and what rehearsals predict: a document that ``nodefall rehearse``
writes and ``nodefall compare`` reads. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from chaos.core.errors import BadInput, bad_input
from chaos.verdicts.outcome.measure import Measure, Outcome

FORMAT = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added


class Band(Struct, frozen=True):
    """Times of one measure in seconds, over the ``happened`` of ``outcomes`` in which it came true."""

    measure: Measure
    outcomes: int
    happened: int
    low: float
    p5: float
    p50: float
    p95: float
    high: float

    @property
    def share(self) -> float:
        """Share of outcomes in which it happened: more than 0, at most 1."""
        return self.happened / self.outcomes


def bands(outcomes: Iterable[Outcome]) -> dict[Measure, Band]:
    """The band of each measure that came true in at least one outcome, sorted by its median."""
    values: dict[Measure, list[float]] = defaultdict(list)
    number = 0
    for outcome in outcomes:
        number += 1
        for measure, seconds in outcome.seconds.items():
            values[measure].append(seconds)
    found = [_band(measure, sorted(times), number) for measure, times in values.items()]
    return {band.measure: band for band in sorted(found, key=lambda band: (band.p50, band.measure))}


def _band(measure: Measure, times: list[float], outcomes: int) -> Band:
    p5, p50, p95 = (quantile(times, share) for share in (0.05, 0.5, 0.95))
    return Band(measure, outcomes, len(times), times[0], p5, p50, p95, times[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    """Quantile of sorted numbers, interpolated linearly between neighbours."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (position - low) * (ordered[high] - ordered[low]), 3)


class ExpectationBand(Struct, frozen=True):
    """One expectation over all seeds: number of verdicts by status, and the band of its duration if it was measured.

    ``section``: hypothesis, recovery or abort. ``operator``: within, never or always, "" if it has none. Seconds;
    ``measured`` is the number of seeds with a duration.
    """

    section: str
    name: str
    verdicts: dict[str, int]
    operator: str = ""
    measured: int = 0
    low: float | None = None
    p5: float | None = None
    p50: float | None = None
    p95: float | None = None
    high: float | None = None


class Prediction(Struct, frozen=True, rename="camel"):
    """Bands over ``seeds``. Hashes are SHA-256 of files; ``snapshot_hash`` is "" for the experiment's own lab.

    ``targets``: the nodes of each target, if they were the same with every seed. ``horizon``: seconds after the fault
    that every seed was observed for. ``exit_codes``: number of seeds by exit code of the run. ``findings``: sentences,
    the most important first. ``not_modelled``: what the lab lacks, and what that means for the answer.
    """

    experiment: str
    experiment_hash: str
    snapshot_hash: str
    seeds: tuple[int, ...]
    horizon: float
    measures: tuple[Band, ...]
    expectations: tuple[ExpectationBand, ...] = ()
    targets: dict[str, tuple[str, ...]] = {}
    exit_codes: dict[str, int] = {}
    findings: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
    what_if: tuple[str, ...] = ()
    kubernetes: str = ""
    format: int = FORMAT


class _Head(Struct):
    format: int = 0


def dump_prediction(prediction: Prediction) -> bytes:
    """The document as JSON, the same bytes for the same prediction."""
    return msgspec.json.format(msgspec.json.encode(prediction, order="deterministic"), indent=1) + b"\n"


def parse_prediction(data: bytes, name: str) -> Prediction:
    """Parse the content of a file ``name``. Raises BadInput if it is not a prediction, or has another format."""
    try:
        found = msgspec.json.decode(data, type=_Head).format
        if found != FORMAT:
            raise bad_input(name, f"has format {found}; this version of nodefall reads predictions of format {FORMAT}")
        prediction = msgspec.json.decode(data, type=Prediction)
    except BadInput:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_input(
            name, f"is not a prediction: {error}", "give the prediction.json of nodefall rehearse --out"
        ) from error
    if wrong := next(_contradictions(prediction), ""):
        raise bad_input(name, f"contradicts itself: {wrong}", "write it again with nodefall rehearse --out")
    return prediction


def _contradictions(prediction: Prediction) -> Iterator[str]:
    """Content that no rehearsal writes."""
    for band in prediction.measures:
        if not 1 <= band.happened <= band.outcomes <= len(prediction.seeds):
            yield f"{band.measure} in {band.happened} of {band.outcomes} runs of {len(prediction.seeds)} seeds"
        if not 0 <= band.low <= band.p5 <= band.p50 <= band.p95 <= band.high:
            yield f"the times of {band.measure} are not in order"
    if len({band.measure for band in prediction.measures}) < len(prediction.measures):
        yield "a measure has two bands"
    for expectation in prediction.expectations:
        times = [getattr(expectation, name) for name in ("low", "p5", "p50", "p95", "high")]
        known = [each for each in times if each is not None]
        if known != sorted(known) or len(known) != (len(times) if expectation.measured else 0):
            yield f"the times of {expectation.name} are not complete, or not in order"

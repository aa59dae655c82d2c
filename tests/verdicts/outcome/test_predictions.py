"""Bands over outcomes, and the document of a prediction."""

from __future__ import annotations

import msgspec
import pytest

from chaos.core.errors import BadInput
from chaos.reports.comparison.side import NotComparableError, expected_of_prediction
from chaos.verdicts.outcome.measure import Kind, Measure, Outcome
from chaos.verdicts.outcome.prediction import (
    Band,
    ExpectationBand,
    Prediction,
    bands,
    dump_prediction,
    parse_prediction,
)

UNKNOWN = Measure(Kind.NODE, "victim", "Ready=Unknown")
READY = Measure(Kind.NODE, "victim", "Ready again")


def test_a_band_has_its_quantiles_and_its_share() -> None:
    outcomes = [Outcome(300.0, {UNKNOWN: float(seconds)}) for seconds in range(40, 61)]
    outcomes[0].seconds[READY] = 5.0
    found = bands(outcomes)
    assert found[UNKNOWN] == Band(UNKNOWN, 21, 21, 40.0, 41.0, 50.0, 59.0, 60.0)
    assert found[READY] == Band(READY, 21, 1, 5.0, 5.0, 5.0, 5.0, 5.0)
    assert found[READY].share == pytest.approx(1 / 21)
    assert list(found) == [READY, UNKNOWN]


def test_no_outcomes_have_no_bands() -> None:
    assert bands([]) == {}


def _prediction() -> Prediction:
    band = Band(UNKNOWN, 2, 2, 40.0, 40.1, 41.0, 41.9, 42.0)
    expectation = ExpectationBand("hypothesis", "replaced", {"held": 2}, "within", 2, 1.0, 1.0, 1.5, 2.0, 2.0)
    return Prediction(
        "power-cut", "e" * 64, "s" * 64, (1, 2), 300.0, (band,), (expectation,), {"victim": ("n1",)}, {"0": 2}
    )


def test_a_document_is_read_as_it_was_written() -> None:
    data = dump_prediction(_prediction())
    assert parse_prediction(data, "p.json") == _prediction()
    assert dump_prediction(parse_prediction(data, "p.json")) == data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a prediction"),
        (b"\xff", "is not a prediction"),
        (b"[" * 100_000, "is not a prediction"),
        (b'{"format": 1}', "is not a prediction"),
        (b"{}", "has format 0"),
        (msgspec.json.encode({"format": 2, "experiment": "x"}), "has format 2; this version"),
    ],
)
def test_what_is_no_prediction_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_prediction(data, "p.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcomes": 0}, "in 2 of 0 runs of 2 seeds"),
        ({"happened": 0}, "in 0 of 2 runs of 2 seeds"),
        ({"outcomes": 3}, "in 2 of 3 runs of 2 seeds"),
        ({"low": 50.0}, "the times of node victim: Ready=Unknown are not in order"),
        ({"low": -1.0}, "the times of node victim: Ready=Unknown are not in order"),
    ],
)
def test_bands_that_contradict_themselves_are_refused(changes: dict[str, float], message: str) -> None:
    band = msgspec.structs.replace(_prediction().measures[0], **changes)
    with pytest.raises(BadInput, match=f"contradicts itself: .*{message}"):
        parse_prediction(dump_prediction(msgspec.structs.replace(_prediction(), measures=(band,))), "p.json")


def test_two_bands_of_a_measure_and_half_a_duration_are_refused() -> None:
    whole = _prediction()
    twice = msgspec.structs.replace(whole, measures=(*whole.measures, *whole.measures))
    with pytest.raises(BadInput, match="a measure has two bands"):
        parse_prediction(dump_prediction(twice), "p.json")
    half = msgspec.structs.replace(whole.expectations[0], p50=None)
    with pytest.raises(BadInput, match="the times of replaced are not complete, or not in order"):
        parse_prediction(dump_prediction(msgspec.structs.replace(whole, expectations=(half,))), "p.json")


def test_rehearsals_without_a_fault_are_no_prediction() -> None:
    refused = msgspec.structs.replace(_prediction(), horizon=0.0, measures=())
    with pytest.raises(NotComparableError, match=r"p\.json predicts nothing: none of its 2 rehearsals had a fault"):
        expected_of_prediction(refused, "p.json")

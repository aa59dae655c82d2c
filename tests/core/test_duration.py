"""Requirements of experiments on facts.

Time spans as systemd prints them.

Factors of deadlines, and the bounds that they extend.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.duration import parse_bound, parse_requirement, parse_timespan
from chaos.core.number_types import parse_factor
from chaos.lab.hostshell.programs.systemctl import format_timespan


@pytest.mark.parametrize("text", ["", "> ", "about 3", ">>3", "3 s"])
def test_invalid_requirements(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h 26min 19.123456s", 5179.123456),
        ("3.5s", 3.5),
        ("250ms", 0.25),
        ("1w 2d", 777600.0),
        ("1month", 2629800.0),
        ("infinity", None),
        ("", None),
        ("soon", None),
        ("5", None),
    ],
)
def test_vectors(text: str, seconds: float | None) -> None:
    assert parse_timespan(text) == (pytest.approx(seconds) if seconds is not None else None)


@given(st.floats(0.001, 1e6))
def test_the_output_of_the_lab_is_parsed(seconds: float) -> None:
    assert parse_timespan(format_timespan(seconds)) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "factor"), [(1, 1.0), (2, 2.0), (1.5, 1.5), ("3x", 3.0), ("1.5x", 1.5), ("2", 2.0), ("100x", 100.0)]
)
def test_factors(text: Any, factor: float) -> None:
    assert parse_factor(text) == factor


@pytest.mark.parametrize(
    "text", [0, 0.5, -2, "0.9x", "-2x", "x", "", "3 x", "x3", "3xx", "1e3", "nan", "inf", 101, True, None, [], "٣x"]
)
def test_no_factors(text: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a factor from 1 to 100; write it like 2 or 1\.5x"):
        parse_factor(text)


FACTS = {"controller.nodeMonitorGracePeriod": 50.0, "toleration(unreachable)": 300.0}


@pytest.mark.parametrize(
    ("bound", "scaled"),
    [
        ("10s", 20.0),
        ("1m30s", 180.0),
        ("controller.nodeMonitorGracePeriod", 50.0),
        ("controller.nodeMonitorGracePeriod + 15s", 80.0),
        ("15s + toleration(unreachable)", 330.0),
        ("controller.nodeMonitorGracePeriod - 11s + 40s", 119.0),
        ("20s - 5s", 35.0),
    ],
)
def test_only_durations_that_are_added_are_scaled(bound: str, scaled: float) -> None:
    assert parse_bound(bound).scaled(2).seconds(FACTS.get) == scaled


@given(
    st.lists(st.tuples(st.sampled_from("+-"), st.sampled_from(["5s", "250ms", *FACTS])), max_size=5),
    st.floats(1, 100),
    st.floats(1, 100),
)
def test_a_larger_factor_never_gives_an_earlier_deadline(terms: list[tuple[str, str]], one: float, two: float) -> None:
    bound = parse_bound("10s" + "".join(f" {sign} {term}" for sign, term in terms))
    small, large = (bound.scaled(factor).seconds(FACTS.get) for factor in sorted((one, two)))
    written = bound.seconds(FACTS.get)
    assert written is not None
    assert small is not None
    assert large is not None
    assert written <= small <= large

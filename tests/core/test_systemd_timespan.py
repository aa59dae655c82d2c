"""Time spans as systemd prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.duration import parse_timespan
from chaos.lab.hostshell.programs.systemctl import format_timespan


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

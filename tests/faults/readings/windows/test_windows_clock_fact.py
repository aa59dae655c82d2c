"""The offset of a Windows host's clock: boot times by two clocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.engine.registry import load_windows_facts

FACT = load_windows_facts()["clock-skew"]
BOOT = 1_790_000_000_000  # milliseconds


@pytest.mark.parametrize(
    ("stdout", "value"),
    [
        (f"31 {BOOT}\r\n", 0),
        (f"31 {BOOT + 60_020}\r\n31 {BOOT} 60\r\n", 60),
        (f"31 {BOOT - 60_400}\r\n31 {BOOT} -60\r\n", -60),
        (f"31 {BOOT + 40}\r\n31 {BOOT} 60\r\n", 0),
        (f"32 {BOOT + 900_000}\r\n31 {BOOT} 60\r\n", 60),
    ],
)
def test_parsed(stdout: str, value: int) -> None:
    assert FACT.parse(stdout, 0) == value


@given(st.integers(-600, 600), st.integers(-400, 400))
def test_a_small_error_of_the_measurement_changes_nothing(skew: int, error: int) -> None:
    assert FACT.parse(f"31 {BOOT + skew * 1000 + error}\n31 {BOOT} {skew}\n", 0) == skew


@pytest.mark.parametrize(
    ("stdout", "code"), [("", 0), ("31", 0), ("31 x", 0), (f"31 {BOOT}\n31", 0), (f"31 {BOOT}", 1)]
)
def test_output_that_is_not_understood(stdout: str, code: int) -> None:
    with pytest.raises(ValueError, match=r"boot time|invalid literal"):
        FACT.parse(stdout, code)

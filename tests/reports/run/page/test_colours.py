"""Contrast of the page's colours: WCAG 2 wants 4.5 for text."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = (files("chaos.reports") / "assets" / "base.css").read_text(encoding="utf-8")
SCHEMES = dict(zip(("light", "dark"), re.findall(r":root \{([^}]*)\}", CSS), strict=True))
TEXTS = ("ink", "quiet", "link", "held", "violated", "inconclusive", "pending", "lab", "step")
STATES = ("ready", "running", "pending", "notready", "unknown", "terminating", "succeeded", "failed")


def colour(scheme: str, name: str) -> tuple[int, ...]:
    found = re.search(rf"--{name}: #([0-9a-f]+);", SCHEMES[scheme])
    assert found, name
    digits = found[1] if len(found[1]) == 6 else "".join(c * 2 for c in found[1])
    return tuple(int(digits[i : i + 2], 16) for i in (0, 2, 4))


def luminance(rgb: tuple[int, ...]) -> float:
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(scheme: str, first: str, second: str) -> float:
    low, high = sorted(luminance(colour(scheme, name)) for name in (first, second))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_can_be_read(scheme: str, text: str, ground: str) -> None:
    assert contrast(scheme, text, ground) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_names_of_states_can_be_read_on_their_bars(scheme: str, state: str) -> None:
    assert contrast(scheme, "s-text", f"s-{state}") >= 4.5


def test_contrast_of_black_and_white_is_that_of_the_standard() -> None:
    assert round((luminance((255, 255, 255)) + 0.05) / (luminance((0, 0, 0)) + 0.05), 2) == 21

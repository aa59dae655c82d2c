"""Parameters of tests that cost seconds each: a few in every run, all of them in ``.ci/nightly``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def others_nightly(values: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """All ``values``, of which those outside ``kept`` run at night alone. Raises ValueError for an unknown one."""
    every = list(values)
    if unknown := [each for each in kept if each not in every]:
        raise ValueError(f"parameters to keep: not among the values: {unknown}")
    return [each if each in kept else pytest.param(each, marks=pytest.mark.nightly) for each in every]

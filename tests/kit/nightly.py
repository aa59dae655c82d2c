"""Parameters of tests that cost seconds each: a few in every run, all of them in ``.ci/nightly``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def others_nightly(values: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """All ``values``, of which those outside ``always`` run at night alone. Raises ValueError for an unknown one."""
    every = list(values)
    if unknown := [each for each in always if each not in every]:
        raise ValueError(f"parameters for every run: not among the values: {unknown}")
    return [each if each in always else pytest.param(each, marks=pytest.mark.nightly) for each in every]

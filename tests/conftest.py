"""Shared helpers of a folder's tests can be imported by name; how tests are spread over processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

for helpers in ("actions", "engine", "e2e", "lab/kit", "lab/replay", "lab/sim", "power", "realkit"):
    sys.path.insert(0, str(Path(__file__).parent / helpers))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With pytest -n: the tests of a file share what they start, and those on real machines share the machines."""
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue  # a file that takes long is spread by its own marks
        group = "machines" if "realhosts" in item.path.parts else item.path.name
        item.add_marker(pytest.mark.xdist_group(group))

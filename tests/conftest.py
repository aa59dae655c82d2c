"""Shared helpers of a folder's tests can be imported by name; how tests are spread over processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

for helpers in ("actions", "engine", "e2e", "lab/kit", "lab/replay", "lab/sim", "power", "realkit"):
    sys.path.insert(0, str(Path(__file__).parent / helpers))


_DOCKER = ("realhosts", "power", "transports")  # two daemons at once get in each other's way


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With pytest -n: the tests of a file share what they start; those that need Docker share one daemon."""
    for item in items:
        if item.get_closest_marker("xdist_group"):
            continue  # a file that takes long is spread by its own marks
        group = "docker" if item.path.parent.name in _DOCKER else item.path.name
        item.add_marker(pytest.mark.xdist_group(group))

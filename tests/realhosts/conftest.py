"""Three real machines for the whole session; a test that takes one down brings it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.machines import RealHost, machines, missing


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RealHost]]:
    if why := missing():
        pytest.skip(f"no real machines: {why}")
    with machines(3, tmp_path_factory.mktemp("machines")) as hosts:
        yield hosts

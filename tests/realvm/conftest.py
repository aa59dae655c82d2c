"""One virtual machine for the whole session; a test that takes it down brings it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.vms import VirtualMachine, missing, virtual_machine


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualMachine]:
    if why := missing():
        pytest.skip(f"no virtual machine: {why}")
    with virtual_machine(tmp_path_factory.mktemp("vm")) as booted:
        yield booted

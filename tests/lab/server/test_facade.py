"""The public interface of the lab: complete, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chaos.lab import facade

LOADED = "import chaos.lab.facade, sys; print([name for name in sys.modules if name.startswith('chaos.lab.')])"


@pytest.mark.parametrize("name", facade.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(facade, name) is not None


def test_other_names_are_an_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'chaos.lab.facade' has no attribute 'Cluster'"):
        facade.Cluster  # noqa: B018 - the access is the test


def test_the_import_is_cheap() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=30)
    assert ran.stdout.strip() == "['chaos.lab.facade']"

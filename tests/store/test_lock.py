"""One run at a time on a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.model.errors import Refused
from chaos.store.lock import one_at_a_time


def test_the_second_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with one_at_a_time("a/../b", tmp_path):
        with pytest.raises(Refused, match=f"process {os.getpid()}"), one_at_a_time("a/../b", tmp_path):
            pass
        with one_at_a_time("another", tmp_path):
            pass
    with one_at_a_time("a/../b", tmp_path):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"nodefall-{os.getuid()}-x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="cannot be opened"), one_at_a_time("x", tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()

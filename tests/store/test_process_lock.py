"""One run at a time on a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.model.errors import Refused
from chaos.store.process_lock import exclusive_lock


def test_the_second_is_refused_with_the_name_of_the_holder(tmp_path: Path) -> None:
    with exclusive_lock("a/../b", tmp_path):
        with pytest.raises(Refused, match=f"process {os.getpid()}"), exclusive_lock("a/../b", tmp_path):
            pass
        with exclusive_lock("another", tmp_path):
            pass
    with exclusive_lock("a/../b", tmp_path):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"nodefall-{os.getuid()}-x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="cannot open the lock"), exclusive_lock("x", tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()

"""Directories of game days are found by name, and made for each day."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.core.errors import UsageError
from chaos.core.store.day_directory import choose, find, names, record_name, records


def made(root: Path, gameday: str, day: str, cluster: str = "lab", at: int = 1) -> Path:
    directory = choose(root, gameday, day, cluster, lambda _: True)
    file = directory / record_name(cluster)
    file.write_text("{}")
    os.utime(file, (at, at))
    return directory


def test_days_are_found(tmp_path: Path) -> None:
    first, second = made(tmp_path, "monthly", "2026-12-01", at=1), made(tmp_path, "monthly", "2027-01-05", at=3)
    weekly = made(tmp_path, "weekly", "2026-12-01", at=2)
    assert find(tmp_path, "last") == find(tmp_path, "monthly") == second
    assert find(tmp_path, "weekly") == weekly
    assert find(tmp_path, "monthly/2026-12-01") == first
    assert find(tmp_path / "nowhere", str(first)) == first
    assert names(tmp_path) == ["monthly/2026-12-01", "monthly/2027-01-05", "weekly/2026-12-01"]


@pytest.mark.parametrize("name", ["last", "monthly", "", "..", "*/*", "/", "../reports"])
def test_what_is_no_day(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no game day"):
        find(tmp_path, name)


def test_a_day_of_the_same_name_has_its_own_directory(tmp_path: Path) -> None:
    first = made(tmp_path, "monthly", "mon")
    assert choose(tmp_path, "monthly", "mon", "lab", lambda _: True) == first
    assert choose(tmp_path, "monthly", "mon", "prod", lambda _: False) == first  # another cluster of the same day
    assert choose(tmp_path, "monthly", "mon", "lab", lambda _: False) == first.with_name("mon-2")


def test_records_of_a_directory(tmp_path: Path) -> None:
    directory = made(tmp_path, "monthly", "mon")
    made(tmp_path, "monthly", "mon", "east")
    (directory / "report.json").write_text("{}")
    assert [path.name for path in records(directory)] == ["cluster-east.json", "cluster-lab.json"]

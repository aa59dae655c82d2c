"""Run directories are found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.model.errors import UsageError
from chaos.store.run_directory import RUN, RunInfo, create, find, load, save

NOW = 1795232133.0


def run(root: Path, experiment: str, now: float) -> Path:
    directory = create(root, experiment, now)
    save(directory, RUN, RunInfo("r", experiment, now, {"kind": "Inventory"}))
    return directory


def test_names_are_utc_and_never_shared(tmp_path: Path) -> None:
    first, second = run(tmp_path, "e", NOW), run(tmp_path, "e", NOW)
    assert first.relative_to(tmp_path).as_posix() == "e/20261121T033533Z"
    assert second.name == "20261121T033533Z-2"
    assert first.stat().st_mode & 0o77 == 0


def test_find(tmp_path: Path) -> None:
    old, new, other = run(tmp_path, "e", NOW), run(tmp_path, "e", NOW + 60), run(tmp_path, "f", NOW + 30)
    for name, expected in {"e": new, "f": other, "last": new, str(old): old, f"e/{old.name}": old}.items():
        assert find(tmp_path, name) == expected
    assert load(old, RUN, RunInfo).experiment == "e"


@pytest.mark.parametrize("name", ["nothing", "e/20000101T000000Z", "../..", "/"])
def test_not_found(tmp_path: Path, name: str) -> None:
    run(tmp_path, "e", NOW)
    with pytest.raises(UsageError):
        find(tmp_path, name)


def test_unreadable_artefact(tmp_path: Path) -> None:
    directory = run(tmp_path, "e", NOW)
    (directory / RUN).write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        load(directory, RUN, RunInfo)

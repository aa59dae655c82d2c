"""Run directories are found again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.app.logs import RunLog
from chaos.model.errors import Refused, UsageError
from chaos.store.journal import Journal
from chaos.store.private_files import write_private
from chaos.store.recording import RecordingWriter
from chaos.store.run_directory import RECORDING, RUN, RunInfo, create, find, load, save

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


@pytest.fixture
def loose_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("loose_umask")
def test_everything_is_private_whatever_the_umask(tmp_path: Path) -> None:
    directory = run(tmp_path / "reports", "e", NOW)
    with Journal(directory) as journal, RecordingWriter(directory / RECORDING):
        journal.record_replica(True)
    log = RunLog()
    log.open(directory)
    log.emit(logging.LogRecord("chaos", logging.INFO, "f", 1, "text", (), None))
    log.close()
    write_private(directory / "report.html", b"x")
    found = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    assert found == dict.fromkeys([RUN, "journal.jsonl", RECORDING, "debug.log", "report.html"], 0o600)
    for path in (directory, directory.parent, tmp_path / "reports"):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_file_of_an_earlier_version_becomes_private_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "report.html").touch(0o644)
    write_private(tmp_path / "report.html", b"x")
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        write_private(tmp_path / "link", b"x")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("is_root", [True, False])
def test_root_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0 if is_root else 1000)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "e").symlink_to(tmp_path / "elsewhere")
    if is_root:
        with pytest.raises(Refused, match="symbolic link, which root does not follow"):
            create(tmp_path, "e", NOW)
    else:
        create(tmp_path, "e", NOW)
    assert len(list((tmp_path / "elsewhere").iterdir())) == (0 if is_root else 1)


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

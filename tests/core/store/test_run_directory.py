"""Run directories are found again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.app.wiring.logs import RunLog
from chaos.core.errors import BadInput, Refused, UsageError
from chaos.core.files import write_private
from chaos.core.store.journal import NAME, Journal
from chaos.core.store.recording_writer import RecordingWriter
from chaos.core.store.run_directory import PLAN, RECORDING, RUN, RunInfo, create, find, load, refuse_untrusted, save
from tests.kit.elsewhere import give_away

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


@pytest.mark.parametrize("attack", ["reports belong to another", "another made the experiment's", "all may write"])
@pytest.mark.parametrize("in_pod", [False, True])
def test_no_run_where_another_user_could_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str, in_pod: bool
) -> None:
    """In a pod, a volume may be writable by all: no other user logs in."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    reports = tmp_path / "reports"
    (reports / "e").mkdir(parents=True)
    if attack == "all may write":
        reports.chmod(0o777)
    else:
        give_away(reports if "belong" in attack else reports / "e", monkeypatch)
    if in_pod and "experiment" not in attack:
        assert create(reports, "e", NOW).is_dir()
        return
    with pytest.raises(Refused, match=r"cannot create the run directory in .*: not trusted: ") as caught:
        create(reports, "e", NOW)
    assert "--reports DIRECTORY" in caught.value.hint
    assert list((reports / "e").iterdir()) == []


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


@pytest.mark.parametrize("level", ["experiment", "run"])
@pytest.mark.parametrize("name", ["last", "e", "e/{run}", "{root}/e/{run}"])
def test_a_link_of_another_user_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, name: str
) -> None:
    """Whoever made it chooses what an undo finds there; a link of the same user is its own choice."""
    root, elsewhere = tmp_path / "reports", run(tmp_path / "elsewhere", "e", NOW)
    target = elsewhere if level == "run" else elsewhere.parent
    link = root / "e" / elsewhere.name if level == "run" else root / "e"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    name = name.format(root=root, run=elsewhere.name)
    assert find(root, name) == root / "e" / elsewhere.name
    give_away(link, monkeypatch)
    with pytest.raises(BadInput, match="not trusted: it is a symbolic link of user") as caught:
        find(root, name)
    assert str(link) in caught.value.message


@pytest.mark.parametrize("part", ["", "..", RUN, PLAN, NAME])
def test_a_run_of_another_user_is_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    directory = whole_run(tmp_path)
    refuse_untrusted(directory)
    give_away(directory / part if part != ".." else directory.parent, monkeypatch)
    with pytest.raises(BadInput, match="not trusted: it belongs to user") as caught:
        refuse_untrusted(directory)
    assert "chown" in caught.value.problems[0].hint


@pytest.mark.parametrize("part", ["", "..", RUN, PLAN, NAME])
def test_a_run_that_others_may_write_is_not_undone(tmp_path: Path, part: str) -> None:
    directory = whole_run(tmp_path)
    path = directory / part if part != ".." else directory.parent
    path.chmod(path.stat().st_mode | 0o002)
    with pytest.raises(BadInput, match="not trusted: any user may write"):
        refuse_untrusted(directory)


def test_in_a_sticky_directory_others_replace_nothing(tmp_path: Path) -> None:
    directory = whole_run(tmp_path)
    directory.parent.chmod(0o1777)
    refuse_untrusted(directory)


@pytest.mark.parametrize(
    ("sudo_user", "is_trusted"), [("{owner}", True), ("{other}", False), ("", False), ("x", False)]
)
def test_root_trusts_the_user_who_ran_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sudo_user: str, is_trusted: bool
) -> None:
    directory = whole_run(tmp_path)
    owner = give_away(directory / RUN, monkeypatch)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", sudo_user.format(owner=owner, other=owner + 1))
    if is_trusted:
        refuse_untrusted(directory)
    else:
        with pytest.raises(BadInput, match=f"belongs to user {owner}"):
            refuse_untrusted(directory)


def whole_run(tmp_path: Path) -> Path:
    directory = run(tmp_path, "e", NOW)
    save(directory, PLAN, {})
    with Journal(directory) as journal:
        journal.record_replica(True)
    return directory

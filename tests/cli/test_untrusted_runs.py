"""``undo`` reads nothing that another user could have written: it would be sent to machines as root."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.app import main
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import RUN, RunInfo, create, save
from tests.kit.elsewhere import give_away


def a_run(reports: Path) -> Path:
    directory = create(reports, "e", 1795232133.0)
    save(directory, RUN, RunInfo("r", "e", 1795232133.0, {"kind": "Inventory"}))
    Journal(directory).close()
    return directory


@pytest.mark.parametrize("reason", ["belongs to user", "any user may write", "is a symbolic link of user"])
def test_undo_refuses_the_run_of_another_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    directory = a_run(tmp_path / "reports")
    if "link" in reason:
        directory = directory.rename(tmp_path / "elsewhere")
        link = tmp_path / "reports" / "e" / "20990101T000000Z"
        link.symlink_to(directory)
        give_away(link, monkeypatch)
    elif "belongs" in reason:
        give_away(directory / "journal.jsonl", monkeypatch)
    else:
        (directory / RUN).chmod(0o602)
    assert main(["undo", "last", "--reports", str(tmp_path / "reports")]) == 64
    assert f"not trusted: {'it ' if reason[0] in 'bi' else ''}{reason}" in capsys.readouterr().err
    assert sorted(path.name for path in directory.iterdir()) == ["journal.jsonl", RUN]


def test_the_own_run_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path / "reports")
    main(["undo", "last", "--reports", str(tmp_path / "reports")])
    assert "not trusted" not in capsys.readouterr().err

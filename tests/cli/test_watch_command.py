"""``watch`` and ``run --serve``: what is refused before anything begins."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.app.watch import active_run, open_watched
from chaos.app.wiring import lock
from chaos.cli.app import main
from chaos.cluster.lease import LeaseRecord
from chaos.core.errors import BadInput
from chaos.core.labels import RUN_LABEL
from tests.kit.fakes import FakeKube
from tests.kit.processes import EXPERIMENTS, LAB

EXPERIMENT = str(EXPERIMENTS / "graceful-poweroff.yaml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", EXPERIMENT, "-i", str(LAB), "--serve", "host:port"], "--serve: 'host:port' is not an address"),
        (["run", "-i", str(LAB), "--serve", EXPERIMENT], "missing argument: give an EXPERIMENT"),
        (["run", EXPERIMENT, "-i", str(LAB), "--serve", "--repeat", "2"], "--repeat cannot be combined with --serve"),
        (["watch"], "no inventory: give --inventory FILE"),
        (["watch", "last", "-i", str(LAB)], "give RUN or --inventory, not both"),
        (["watch", "last"], "no run 'last'"),
        (["watch", "-i", str(LAB)], "no lab is running"),
        (["watch", "last", "--serve", "everywhere"], "is not an address: write PORT or HOST:PORT"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NODEFALL_INVENTORY", raising=False)
    assert main(arguments) == 64
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_reported_before_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["run", EXPERIMENT, "-i", str(LAB), "--serve", str(port)]) == 64
    assert f"cannot serve on 127.0.0.1:{port}: the port is in use" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_that_others_may_have_made_is_not_followed(tmp_path: Path) -> None:
    run = tmp_path / "experiment" / "stamp"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    run.chmod(0o777)
    with pytest.raises(BadInput, match="stamp"):
        open_watched(run)


@pytest.mark.parametrize(
    ("record", "run"),
    [
        (None, ""),
        (LeaseRecord("1"), ""),
        (LeaseRecord("1", "ann@a/7", renewed="2026-11-23T07:00:00Z", annotations={RUN_LABEL: "r-1"}), "r-1"),
        (LeaseRecord("1", "ann@a/7", renewed="2026-11-23T07:00:00Z"), "unknown"),
        (LeaseRecord("1", "ann@a/7", renewed="2026-11-23T06:59:00Z", annotations={RUN_LABEL: "r-1"}), ""),
    ],
)
def test_the_active_run_is_that_of_a_lock_that_was_renewed(
    monkeypatch: pytest.MonkeyPatch, record: LeaseRecord | None, run: str
) -> None:
    monkeypatch.setattr(lock, "SystemClock", lambda: SimpleNamespace(now=lambda: 1795417205.0, close=lambda: None))
    monkeypatch.setattr(lock, "read_lock", lambda *_: record)
    assert active_run(lock.held_lock(FakeKube({}), "nodefall")) == run

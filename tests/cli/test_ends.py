"""Failures of commands: --json, closed streams (as processes), pending undo, unwritable directories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pytest

from chaos.app.undo.pending import guard_pending_undo
from chaos.cli.run import run as run_impl
from chaos.cli.run.lines import PlainProgress
from chaos.cli.run.live import BestEffortProgress
from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.command import PowerCommand, PowerVerb
from chaos.core.errors import NodefallError, UndoPending
from chaos.core.store import run_directory
from chaos.core.store.journal import NAME, Journal, read_pending
from tests.kit.command import command

ROOT = Path(__file__).parents[2]
EXPERIMENT = ROOT / "experiments" / "graceful-poweroff.yaml"
UNDO = Undo((UndoStep(PowerCommand(PowerVerb.ON)),), (FactCheck("machine", "on"),))
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("NODEFALL")} | {"PYTHONPATH": str(ROOT)}
UNREACHABLE = "apiVersion: nodefall.dev/v1alpha1\nkind: Inventory\nmetadata: {name: x}\ncluster: {kubeconfig: k.yaml}\n"
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {token: t}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
"""


@pytest.fixture
def unreachable(tmp_path: Path) -> Path:
    """The inventory of a cluster that does not respond."""
    (tmp_path / "k.yaml").write_text(KUBECONFIG)
    (tmp_path / "k.yaml").chmod(0o600)
    path = tmp_path / "inventory.yaml"
    path.write_text(UNREACHABLE)
    return path


def killed_run(reports: Path, inventory: dict[str, object], uid: str = "") -> Path:
    """The directory of a killed run, whose power-on is pending."""
    directory = run_directory.create(reports, "x", 0.0)
    run_directory.save(directory, run_directory.RUN, run_directory.RunInfo("x-1", "x", 0.0, inventory, cluster_uid=uid))
    with Journal(directory) as journal:
        journal.record_intent("off", "poweroff", "n1", UNDO, 0.0)
    return directory


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "--json", "--nonsense"], 64, "No such option"),
        (["run", EXPERIMENT, "--json"], 64, "no inventory"),
        (["run", "missing.yaml", "-i", "missing.yaml", "--json"], 64, "missing.yaml"),
        (["run", EXPERIMENT, "-i", "inventory.yaml", "--json"], 4, "connection refused"),
        (["plan", EXPERIMENT, "-i", "inventory.yaml", "--json"], 4, "connection refused"),
        (["undo", "last", "--json"], 64, "no run 'last'"),
    ],
)
def test_with_json_an_error_is_one_object(
    unreachable: Path, arguments: list[str | Path], code: int, message: str
) -> None:
    done = command(*arguments, cwd=unreachable.parent)
    assert done.returncode == code, done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] == code
    assert message in error["message"]
    assert message in done.stderr


@pytest.mark.parametrize("closed", ["<&- >&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_streams_that_are_closed_or_full_change_no_exit_code(unreachable: Path, closed: str) -> None:
    line = f"exec {sys.executable} -m chaos plan {EXPERIMENT} -i {unreachable} --json {closed}"
    done = subprocess.run(["sh", "-c", line], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", ["schema", "--help", "list --json", "list actions", "explain cordon -o yaml"])
def test_a_full_disk_is_no_bug(arguments: str) -> None:
    line = f"exec {sys.executable} -m chaos {arguments} >/dev/full"
    done = subprocess.run(["sh", "-c", line], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    first, *rest = done.stderr.splitlines()
    assert first == "error: cannot write the output: No space left on device"
    assert rest in ([], ["hint: write it somewhere else"])


def test_undo_without_a_cluster_stays_pending(unreachable: Path) -> None:
    directory = killed_run(unreachable.parent / "reports", {})
    done = command("undo", "last", "-i", unreachable, "--json", cwd=unreachable.parent)
    assert done.returncode == 3
    assert "connection refused; pending undo: off on n1" in json.loads(done.stdout)["error"]["message"]
    damaged = command("undo", directory, cwd=unreachable.parent)  # run.json has no inventory
    assert damaged.returncode == 3
    assert "run.json" in damaged.stderr
    assert [o.step for o in read_pending(directory)] == ["off"]


def test_the_list_survives_a_damaged_journal_and_leaves_a_live_one_alone(tmp_path: Path) -> None:
    live = killed_run(tmp_path / "reports", {})
    broken = killed_run(tmp_path / "reports", {})
    (broken / NAME).write_bytes(b"\x00\n")
    with (live / NAME).open("ab") as file:
        file.write(b'{"half')
    done = command("undo", "--list", cwd=tmp_path)
    assert done.returncode == 3
    assert "off (poweroff) on n1" in done.stdout
    assert "the journal is damaged" in done.stderr
    assert (live / NAME).read_bytes().endswith(b'{"half')


def test_a_pending_undo_takes_precedence_over_every_error(tmp_path: Path) -> None:
    directory = killed_run(tmp_path, {})
    for error in (NodefallError("x"), ValueError("y"), KeyboardInterrupt()):
        with pytest.raises(UndoPending, match="pending undo: off on n1"), guard_pending_undo(directory):
            raise error
    with Journal(directory) as journal:
        journal.mark_undone(journal.pending()[0], "n1 is on")
        journal.record_intent("on", "power-on", "n1", Undo(), 1.0)  # nothing to undo
    with pytest.raises(ValueError, match="y"), guard_pending_undo(directory):
        raise ValueError("y")


def test_a_lost_stream_does_not_stop_a_run() -> None:
    stream = StringIO()
    progress = BestEffortProgress(PlainProgress(stream))
    progress.note("first")
    assert "first" in stream.getvalue()
    stream.close()
    progress.note("second")
    progress.phase("roll back")
    progress.tick(1.0)
    progress.close()


def test_a_display_that_fails_does_not_stop_a_run(caplog: pytest.LogCaptureFixture) -> None:
    """What it has printed stays, it is closed at once, and its error is logged."""
    stream = StringIO()
    display = PlainProgress(stream)
    display.note = display.close = _fail  # type: ignore[method-assign,assignment]
    progress = BestEffortProgress(display)
    progress.phase("arm")
    progress.note("first")
    progress.phase("roll back")
    progress.close()
    assert stream.getvalue().split() == ["phase:", "arm"]
    assert [record.message for record in caplog.records if record.exc_info] == [
        "the progress failed, and no more of it is shown",
        "the progress could not be closed",
        "the progress could not be closed",
    ]


def test_ctrl_c_while_pages_fetch_the_report_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Page:
        def finish(self, _run: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(run_impl, "tune_gc", lambda: None)
    monkeypatch.setattr(run_impl, "load_inputs", lambda _: (None, None))
    monkeypatch.setattr(run_impl, "live_page", lambda *_: nullcontext(Page()))
    monkeypatch.setattr(run_impl, "run_once", lambda *_: None)
    monkeypatch.setattr(run_impl, "print_result", lambda *_: 1)
    assert run_impl.run_and_report(run_impl.RunOptions(None, None, Path()), run_impl.OutputOptions()) == 1


def _fail(*_arguments: object) -> None:
    raise KeyError("cannot draw")


@pytest.mark.parametrize("target", ["a-file", "/proc/nowhere"])
def test_an_unusable_directory_for_reports(tmp_path: Path, target: str) -> None:
    (tmp_path / "a-file").write_text("")
    with pytest.raises(NodefallError, match="cannot create the run directory") as caught:
        run_directory.create(tmp_path / target, "x", 0.0)
    assert caught.value.code == 4


def test_lab_up_overwrites_only_inventories_of_labs(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    done = command("lab", "up", "--out", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 64
    assert (tmp_path / "mine.yaml").read_text() == "mine"


def test_the_report_of_a_killed_run_has_a_hint(tmp_path: Path) -> None:
    killed_run(tmp_path / "reports", {})
    done = command("report", "last", cwd=tmp_path)
    assert done.returncode == 64
    assert "has no result" in done.stderr
    assert "nodefall undo" in done.stderr

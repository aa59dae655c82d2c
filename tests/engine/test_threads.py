"""Threads of a run: a crash ends that run alone, and threads of the embedding program are left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.cluster.lease_lock import ClusterLock, Identity
from chaos.core.action import Undo
from chaos.core.command import HostCommand
from chaos.core.plan import PlannedStep
from chaos.core.ports import Response, Sink
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.engine.observers import RunObservers
from chaos.engine.run import execute
from chaos.engine.session import RunSession
from tests.engine.test_inject import EMPTY, OneOutcome, context_of
from tests.kit.fakes import FakeClock, FakeKube, answered
from tests.kit.sessions import FakeJudge, FakeRecorder


class CrashingLock(ClusterLock):
    """A lock whose thread meets a bug."""

    def _renew_loop(self) -> None:
        raise ZeroDivisionError("bug")


class Creating(FakeKube):
    """Creates what is posted; nothing else exists."""

    def answer(self, method: str, path: str, body: Any) -> Response:
        return Response(201, b"{}", {}) if method == "POST" else super().answer(method, path, body)


class OneEntry:
    """An observer that emits one entry in a thread, and is synced once that thread has ended."""

    name = "one entry"

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self._has_ended = False

    def start(self, sink: Sink) -> None:
        def emit() -> None:
            try:
                sink(RecordingEntry(0.0, "host", "boot-id", msgspec.Raw(b'"x"')))
            except ZeroDivisionError as error:
                self._on_error(error)
            self._has_ended = True

        thread = threading.Thread(target=emit)
        thread.start()
        thread.join(10)

    def stop(self) -> None: ...

    def has_synced(self) -> bool:
        return self._has_ended


def context(folder: Path) -> RunSession:
    folder.mkdir(exist_ok=True)
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (HostCommand(("true",)),), Undo(), ())
    return context_of(folder, step, FakeClock(), OneOutcome(answered()), FakeKube({}))


def test_a_crash_of_the_lock_thread_is_reported_to_its_run(tmp_path: Path) -> None:
    first, second = context(tmp_path / "a"), context(tmp_path / "b")
    lock = CrashingLock(Creating({}), "kube-system", Identity("me", {}), FakeClock().now)
    lock.on_crash = first.stop.report_crash
    lock.acquire(lambda _: None)
    lock.release()
    with pytest.raises(ZeroDivisionError, match="bug"):
        first.tick()
    assert second.tick() is EMPTY


def test_two_runs_in_two_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    """One records an entry that its recorder cannot take; the other runs to its end."""
    ends: dict[str, RunResult | BaseException] = {}
    observed: list[Exception] = []

    def run(name: str, emit: Sink) -> None:
        base = context(tmp_path / name)
        base.observers, base.recorder = RunObservers([[OneEntry(observed.append)]]), FakeRecorder(emit)
        try:
            ends[name] = execute(base)
        except ZeroDivisionError as error:
            ends[name] = error

    def broken(entry: RecordingEntry) -> None:
        if entry.kind == "host":
            raise ZeroDivisionError(entry.kind)

    threads = [
        threading.Thread(target=run, args=("good", lambda _: None)),
        threading.Thread(target=run, args=("bad", broken)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert isinstance(ends["bad"], ZeroDivisionError)
    assert isinstance(ends["good"], RunResult)
    assert [str(error) for error in observed] == ["host"]


def test_exceptions_of_foreign_threads_reach_the_hook_of_the_embedding_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked: list[str] = []

    def hook(args: threading.ExceptHookArgs) -> None:
        hooked.append(str(args.exc_value))

    monkeypatch.setattr(threading, "excepthook", hook)

    def fail() -> None:
        raise ValueError("foreign")

    def judge(_live: bool) -> RunResult:
        assert threading.excepthook is hook
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join(10)
        return EMPTY

    running = context(tmp_path / "run")
    running.judge = FakeJudge(judge)
    assert execute(running).run == EMPTY.run
    assert running.stop.crash is None
    assert set(hooked) == {"foreign"}

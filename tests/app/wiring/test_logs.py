"""Debug logs: one per run, redacted, without effect on other loggers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.api import Lab, run
from chaos.app.wiring import logs
from chaos.app.wiring.logs import DEBUG_LOG, RunLog, attached, log_file_handler, run_log
from chaos.core import redaction
from chaos.core.threads import ContextPool, ContextThread

ROOT = Path(__file__).parents[3]
LOGGER = logging.getLogger("chaos.test")
PACKAGE = logging.getLogger("chaos")


class Records(logging.Handler):
    """The messages that a handler of the embedding program receives."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def root_records() -> Iterator[Records]:
    """A handler of the root logger, whose level is INFO."""
    root, handler = logging.getLogger(), Records()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def int_of(text: str) -> int:
    raise ValueError(f"{text} is wrong")


def text_of(directory: Path) -> str:
    return (directory / DEBUG_LOG).read_text(encoding="utf-8")


def test_records_from_before_the_directory_are_written(tmp_path: Path) -> None:
    with run_log() as log:
        LOGGER.debug("early")
        log.open(tmp_path)
        LOGGER.info("late")
    LOGGER.error("after the run")
    lines = text_of(tmp_path).splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["early", "late"]
    assert " DEBUG   chaos.test [MainThread] early" in lines[0]


def test_no_log_without_a_directory(tmp_path: Path) -> None:
    with run_log():
        LOGGER.debug("refused")
    assert list(tmp_path.iterdir()) == []


def test_other_handlers_receive_the_same_as_before(tmp_path: Path, root_records: Records) -> None:
    before = PACKAGE.level, PACKAGE.propagate, list(PACKAGE.handlers)
    with run_log() as log:
        log.open(tmp_path)
        LOGGER.debug("detail")
        LOGGER.warning("warning")
    assert root_records.messages == ["warning"]
    assert (PACKAGE.level, PACKAGE.propagate, PACKAGE.handlers) == before
    assert "detail" in text_of(tmp_path)


def test_the_level_of_the_package_is_respected_and_restored(tmp_path: Path, root_records: Records) -> None:
    PACKAGE.setLevel(logging.ERROR)
    try:
        with run_log() as log:
            log.open(tmp_path)
            LOGGER.warning("warning")
            LOGGER.error("error")
        assert PACKAGE.level == logging.ERROR
    finally:
        PACKAGE.setLevel(logging.NOTSET)
    assert root_records.messages == ["error"]
    assert "warning" in text_of(tmp_path)


def test_runs_in_two_threads_do_not_mix(tmp_path: Path) -> None:
    barrier = threading.Barrier(2)

    def one_run(name: str) -> None:
        directory = tmp_path / name
        directory.mkdir()
        with run_log() as log:
            barrier.wait(10)
            log.open(directory)
            LOGGER.debug("main of %s", name)
            thread = ContextThread(lambda: LOGGER.debug("thread of %s", name))
            thread.start()
            thread.join()
            with ContextPool(2) as pool:
                list(pool.map(lambda number: LOGGER.debug("worker %d of %s", number, name), range(2)))
            barrier.wait(10)

    threads = [threading.Thread(target=one_run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, other in (("a", "b"), ("b", "a")):
        text = text_of(tmp_path / name)
        assert [text.count(f"{what} of {name}") for what in ("main", "thread", "worker 0", "worker 1")] == [1] * 4
        assert f"of {other}" not in text
    assert PACKAGE.level == logging.NOTSET


def test_a_thread_without_context_belongs_to_the_only_run(tmp_path: Path) -> None:
    with run_log() as log:
        log.open(tmp_path)
        thread = threading.Thread(target=lambda: LOGGER.debug("of a library"))
        thread.start()
        thread.join()
    assert "of a library" in text_of(tmp_path)


def test_secrets_are_redacted_in_messages_and_tracebacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", redaction.Known())
    redaction.register_secret("hunter2-hunter2")
    with pytest.raises(ValueError, match="wrong") as caught:
        int_of("hunter2-hunter2")
    with run_log() as log, attached(log_file_handler(tmp_path / "all.log")):
        log.open(tmp_path)
        LOGGER.debug("password %s", "hunter2-hunter2")
        LOGGER.error("failed", exc_info=caught.value)
    for text in (text_of(tmp_path), (tmp_path / "all.log").read_text(encoding="utf-8")):
        assert "hunter2" not in text
        assert "password ***" in text
        assert "ValueError: *** is wrong" in text
        assert "Traceback" in text


def test_the_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 1000)
    with run_log() as log:
        log.open(tmp_path)
        for number in range(100):
            LOGGER.debug("record %d", number)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [DEBUG_LOG, *(f"{DEBUG_LOG}.{number}" for number in range(1, logs.BACKUP_COUNT + 1))]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    assert "record 99" in text_of(tmp_path)


def test_a_failed_write_does_not_fail_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_log() as log:
        log.open(tmp_path / "missing")
        LOGGER.debug("lost")
    assert capsys.readouterr().err == ""


def test_held_records_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "EARLY_RECORDS", 3)
    with run_log() as log:
        for number in range(10):
            LOGGER.debug("record %d", number)
        log.open(tmp_path)
    assert [line.rpartition(" ")[2] for line in text_of(tmp_path).splitlines()] == ["7", "8", "9"]
    assert isinstance(log, RunLog)


@pytest.mark.lab
@pytest.mark.slow
def test_a_run_writes_requests_and_phases_from_its_threads(tmp_path: Path, root_records: Records) -> None:
    with Lab(ROOT / "hosts" / "lab.yaml", workers=3, seed=3) as lab:
        done = run(ROOT / "experiments" / "cordon.yaml", lab.inventory, reports=tmp_path, seed=7)
    text = text_of(done.directory)
    for expected in ("phase: plan", "phase: inject", "phase: recovery", done.result.run, "chaos.cluster"):
        assert expected in text, expected
    assert not [message for message in root_records.messages if "phase:" in message]

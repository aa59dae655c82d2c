"""The process of a command: its streams, its garbage collector, and its end while daemon threads are busy."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cli import output as streams
from chaos.cli.output import StandardStream, is_closed_pipe

ROOT = Path(__file__).parents[2]
# on_exit() stands for the clean-up of OpenSSL: it runs with exit() and not with _exit(), and here it crashes for sure.
_PROGRAM = """
import atexit, ctypes, sys, threading
from chaos.cli.output import ProcessEnd

end = ProcessEnd()
libc = ctypes.CDLL(None)
atexit.register(lambda: sys.stdout.write("atexit ran\\n"))
gate = threading.Event()
threading.Thread(target=lambda: (gate.wait(0.2), sys.stdout.write("thread joined\\n"))).start()
if {is_busy}:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    libc.on_exit(libc.abort, None)
sys.stdout.write("output\\n")
end.code = {code}
sys.exit({code})
"""


@pytest.fixture
def number(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The descriptor of a pipe that no one reads."""
    monkeypatch.setattr(streams, "_CLOSED_PIPES", set())
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_closed_pipe_is_discarded_and_noted(number: int, encoding: str) -> None:
    stream = StandardStream(open(number, "w", encoding=encoding, closefd=False), number)  # noqa: SIM115 - the fixture closes it
    assert stream.write("x" * 100_000) == 100_000
    stream.flush()
    assert is_closed_pipe(number)
    stream.buffer.write(b"more")
    stream.flush()


def test_a_binary_stream_shares_what_is_known(number: int) -> None:
    stream = StandardStream(open(number, "w", encoding="ascii", closefd=False), number)  # noqa: SIM115 - the fixture closes it
    binary = stream.buffer
    binary.write(b"x")
    binary.flush()
    assert is_closed_pipe(number)


def test_a_full_disk_is_still_an_error() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        stream = StandardStream(full, full.fileno())
        stream.write("x")
        with pytest.raises(OSError, match="No space left"):
            stream.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # so that it can be closed


def test_a_stream_that_is_read_gets_everything() -> None:
    raw = io.BytesIO()
    stream = StandardStream(io.TextIOWrapper(raw, encoding="utf-8", write_through=True), 99)
    stream.write("text")
    stream.buffer.write(b"bytes")
    assert raw.getvalue() == b"textbytes"
    assert not is_closed_pipe(99)


@pytest.mark.parametrize(("arguments", "code"), [("schema", 0), ("list", 0), ("validate missing.yaml", 64)])
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_pipe_changes_no_exit_code(arguments: str, code: int, closed: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "chaos", *arguments.split()]
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {closed: writer}
    done = subprocess.run(command, cwd=ROOT, **outputs, timeout=60, check=False)  # type: ignore[call-overload]  # by name
    os.close(writer)
    assert done.returncode == code
    assert b"Traceback" not in (done.stderr or b"")
    assert closed != "stdout" or code or done.stderr == b""


def _run(*, is_busy: bool, code: int | None) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(is_busy=is_busy, code=code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("code", [0, 1, 70])
def test_exit_code_and_output_are_complete(code: int, *, is_busy: bool) -> None:
    process = _run(is_busy=is_busy, code=code)
    assert (process.returncode, process.stderr) == (code, "")
    assert process.stdout.splitlines() == ["output", "thread joined", "atexit ran"]


def test_no_file_is_writable_to_others_whatever_the_umask(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "chaos", "new", tmp_path / "a" / "cordon.yaml", "--action", "cordon")
    (tmp_path / "a").mkdir()
    subprocess.run(command, check=True, capture_output=True, timeout=60, umask=0)
    assert {path.stat().st_mode & 0o022 for path in (tmp_path / "a").rglob("*")} == {0}


def test_without_a_known_code_the_interpreter_ends_as_ever() -> None:
    assert _run(is_busy=True, code=None).returncode == -signal.SIGABRT


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_tuned_before_anything_else() -> None:
    code = """
import gc
from pathlib import Path
from chaos.cli.run.run import OutputOptions, RunOptions, run_and_report
from chaos.core.errors import UsageError
try:
    run_and_report(RunOptions(None, None, Path("reports")), OutputOptions(plain=True))
except UsageError:
    print(gc.get_threshold()[0] > 10_000)
"""
    assert run_python(code) == "True\n"


def test_what_survives_is_examined_once_and_cyclic_garbage_is_freed() -> None:
    code = """
import gc, weakref
from chaos.cli.output import tune_gc
class Cycle:
    def __init__(self): self.me = self
tune_gc()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(60_000)]
garbage = weakref.ref(Cycle())
gc.collect()
print(gc.get_freeze_count() - frozen >= 60_000, len(gc.get_objects()) < 1_000, garbage())
"""
    assert run_python(code) == "True True None\n"

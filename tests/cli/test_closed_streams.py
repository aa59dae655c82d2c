"""Standard streams: a closed pipe is discarded without a word, and other errors are not."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cli import process as streams
from chaos.cli.process import StandardStream, is_closed_pipe

ROOT = Path(__file__).parents[2]


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

"""The writer of recordings: frames that can be read at once, and what a killed writer or a full disk leaves."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.errors import BadInput
from chaos.core.recording import RecordingEntry
from chaos.core.store.recording import read_recording
from chaos.core.store.recording_writer import RecordingWriter

META = RecordingEntry(1.0, "meta", "recording", msgspec.Raw(b'{"format":1}'))
HEAD = """
import sys
from pathlib import Path
import msgspec
from chaos.core.recording import RecordingEntry
from chaos.core.store.recording_writer import RecordingWriter
writer = RecordingWriter(Path(sys.argv[1]))
writer.write(RecordingEntry(1.0, "meta", "recording", msgspec.Raw(b'{"format":1}')))
def write(number):
    writer.write(RecordingEntry(2.0 + number, "host", "fact", msgspec.Raw(b"%d" % number), "n1"))
"""


def line(t: float, value: Any = None) -> RecordingEntry:
    return RecordingEntry(t, "host", "fact", msgspec.Raw(msgspec.json.encode(value)), "n1")


def wait_for_entries(path: Path, number: int) -> list[RecordingEntry]:
    """The entries, once there are so many; the last is the blind window after the end of an open recording."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            found = list(read_recording(path))
        except BadInput:
            found = []
        if len(found) > number:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{path} has fewer than {number} entries")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    with RecordingWriter(path) as writer:
        writer.write(META)
        writer.write(line(2.0, [1, "two"]))
        writer.write(line(1.9, "late"))
    writer.close()  # harmless twice
    lines = list(read_recording(path))
    assert [(found.t, bytes(found.object)) for found in lines[1:]] == [(2.0, b'[1,"two"]'), (2.0, b'"late"')]
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 3


@pytest.mark.parametrize("number", [1, 50, 250, 25_000])
def test_it_can_be_read_while_it_is_written(tmp_path: Path, number: int) -> None:
    path = tmp_path / "r.jsonl.gz"
    writer = RecordingWriter(path)
    writer.write(META)
    for value in range(number):
        writer.write(line(2.0 + value, value))
    lines = wait_for_entries(path, 1 + number)
    assert [found.kind for found in lines] == ["meta", *["host"] * number, "blind"]
    writer.close()
    assert len(list(read_recording(path))) == 1 + number


def test_a_killed_writer_leaves_every_frame_that_it_has_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    # Slower than a reader, which would never come to the end of the file.
    forever = "import time\nwhile True: number += 1; write(number); time.sleep(0.0005)\n"
    code = HEAD + "for number in range(250): write(number)\ninput()\n" + forever
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            wait_for_entries(path, 251)
            process.stdin.write(b"\n")  # it goes on, and is killed meanwhile
            process.stdin.flush()
            wait_for_entries(path, 1_000)
        finally:
            process.kill()
    meta, *lines, blind = read_recording(path)
    assert (meta.kind, blind.kind, blind.type) == ("meta", "blind", "recording")
    assert len(lines) >= 1_000
    assert [bytes(found.object) for found in lines] == [b"%d" % number for number in range(len(lines))]


@cache
def recorded_bytes(folder: Path) -> bytes:
    with RecordingWriter(folder / "whole.jsonl.gz") as writer:
        writer.write(META)
        for value in range(350):
            writer.write(line(2.0 + value, f"value {value}"))
    return (folder / "whole.jsonl.gz").read_bytes()


@given(cut=st.integers(1, 4_000))
def test_a_torn_frame_is_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    whole = recorded_bytes(tmp_path_factory.getbasetemp())
    path = tmp_path_factory.mktemp("torn") / "r.jsonl.gz"
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    try:
        meta, *lines, blind = read_recording(path)
    except BadInput as error:
        assert "is empty" in error.message or "not a JSON line" in error.message  # noqa: PT017 - either is right
        return
    assert (meta.kind, blind.type) == ("meta", "recording")
    assert [bytes(found.object) for found in lines] == [b'"value %d"' % value for value in range(len(lines))]


def test_a_full_disk_is_reported_by_a_later_write_and_by_close(tmp_path: Path) -> None:
    code = (
        HEAD
        + """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
number = 0
def write_until_failure():
    global number
    while True: number += 7919; write(number**1.5)
for use in (write_until_failure, writer.close):
    try: use()
    except OSError as error: print(error.strerror)
"""
    )
    path = tmp_path / "r.jsonl.gz"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("File too large\n" * 2, "")
    assert list(read_recording(path))[-1].type == "recording"


def test_an_entry_that_utf_8_cannot_hold_is_rejected_and_the_others_are_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    with RecordingWriter(path) as writer:
        writer.write(META)
        with pytest.raises(UnicodeEncodeError):
            writer.write(RecordingEntry(2.0, "host", "fact\udcff", msgspec.Raw(b"1")))
        writer.write(RecordingEntry(3.0, "host", "größe", msgspec.Raw(b"1")))
    assert [found.type for found in read_recording(path)] == ["recording", "größe"]


def test_a_closed_recording_takes_no_more(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(META)


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "r").close()
    with pytest.raises(FileExistsError):
        RecordingWriter(tmp_path / "r")

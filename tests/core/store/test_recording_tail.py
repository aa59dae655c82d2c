"""A recording read while it is written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.errors import BadInput
from chaos.core.recording import RecordingEntry
from chaos.core.store.recording import RecordingTail, read_recording
from chaos.core.store.recording_writer import RecordingWriter
from tests.kit.story import RECORDINGS

RECORDING = next(RECORDINGS.glob("01-*.gz"))


def plain(entries: list[RecordingEntry]) -> list[tuple[float, str, str, bytes]]:
    return [(entry.t, entry.kind, entry.type, bytes(entry.object)) for entry in entries]


@given(st.lists(st.floats(0, 1), max_size=6))
@settings(max_examples=20, deadline=None)
def test_wherever_the_writer_is(tmp_path_factory: pytest.TempPathFactory, cuts: list[float]) -> None:
    data = RECORDING.read_bytes()
    file = tmp_path_factory.mktemp("tail") / "recording.jsonl.gz"
    file.write_bytes(b"")
    found: list[RecordingEntry] = []
    with RecordingTail(file) as tail, file.open("ab") as writer:
        written = 0
        for cut in [*sorted(cuts), 1]:
            end = int(len(data) * cut)
            writer.write(data[written:end])
            writer.flush()
            written = end
            found += tail.read()
        assert list(tail.read()) == []
    assert plain(found) == plain(list(read_recording(RECORDING)))


def test_each_frame_of_the_writer_is_read_once_it_is_on_disk(tmp_path: Path) -> None:
    file, entries = tmp_path / "recording.jsonl.gz", list(read_recording(RECORDING))
    with RecordingWriter(file) as writer, RecordingTail(file) as tail:
        found: list[RecordingEntry] = []
        for entry in entries[:250]:
            writer.write(entry)
        while len(found) < 250:
            found += tail.read()
    assert plain(found) == plain(entries[:250])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x1f\x8b\x08\x00" + b"\x00" * 6 + b"\xff" * 50, "is damaged"),
        (gzip.compress(b"no JSON\n", mtime=0), "is not an entry of a recording"),
        (
            gzip.compress(
                json.dumps({"t": 1, "kind": "pods", "type": "ADDED", "object": {}}).encode() + b"\n", mtime=0
            ),
            "kind meta",
        ),
    ],
)
def test_what_is_no_recording(tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "recording.jsonl.gz"
    file.write_bytes(data)
    with RecordingTail(file) as tail, pytest.raises(BadInput, match=words):
        list(tail.read())


def test_an_endless_line_is_an_error_before_memory_runs_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.core.store.recording.MAX_LINE_BYTES", 1 << 20)
    file = tmp_path / "recording.jsonl.gz"
    file.write_bytes(gzip.compress(b"x" * (3 << 20)))
    with RecordingTail(file) as tail, pytest.raises(BadInput, match="has a line longer than 1 MiB"):
        list(tail.read())


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        RecordingTail(tmp_path / "recording.jsonl.gz")

"""Recordings: written, read back, cut off, damaged.

A recording read while it is written.
"""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.errors import BadInput
from chaos.core.recording import RecordingEntry
from chaos.core.store.recording import RecordingTail, build_timeline, read_recording
from chaos.core.store.recording_writer import RecordingWriter
from tests.kit.story import RECORDINGS

META = {"t": 1.0, "kind": "meta", "type": "recording", "object": {"format": 1}}
POD = {"t": 2.0, "kind": "pods", "type": "ADDED", "object": {"metadata": {"name": "p", "uid": "u"}}}
RECORDING = next(RECORDINGS.glob("01-*.gz"))


def text(*lines: dict[str, Any] | str) -> bytes:
    return b"".join((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n" for line in lines)


def put(folder: Path, data: bytes) -> Path:
    path = folder / "r.jsonl.gz"
    path.write_bytes(data)
    return path


def line(t: float, value: Any = None) -> RecordingEntry:
    return RecordingEntry(t, "host", "fact", msgspec.Raw(msgspec.json.encode(value)), "n1")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_plain_and_gzipped(tmp_path: Path, pack: Any) -> None:
    lines = list(read_recording(put(tmp_path, pack(text(META, POD)))))
    assert [(found.t, found.kind) for found in lines] == [(1.0, "meta"), (2.0, "pods")]


def test_several_gzip_members(tmp_path: Path) -> None:
    data = gzip.compress(text(META)) + gzip.compress(text(POD))
    assert [found.kind for found in read_recording(put(tmp_path, data))] == ["meta", "pods"]


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (b"", "", "is empty"),
        (b"\n\n", "", "is empty"),
        (gzip.compress(b"", mtime=0), "", "is empty"),
        (text("garbage"), ":1:1", "not an entry of a recording"),
        (b"garbage", ":1:1", "not a JSON line"),
        (b"\x00\xff\xfe\n", ":1:1", "not an entry of a recording"),
        (text(POD), ":1:1", "must be of kind meta"),
        (text(META | {"object": {"format": 2}}), ":1:1", "has format 2; this version of nodefall reads format 1"),
        (text(META | {"object": {}}), ":1:1", "has format None"),
        (text(META | {"object": []}), ":1:1", "has format None"),
        (text(META, "{"), ":2:1", "not an entry of a recording"),
        (text(META, POD, {"t": 1.5, "kind": "x", "type": "x", "object": 1}), ":3:1", "0.500 s earlier"),
        (text(META, {"t": "noon", "kind": "x", "type": "x", "object": 1}), ":2:1", "Expected `float`"),
        (text(META, {"kind": "x", "type": "x", "object": 1}), ":2:1", "missing required field `t`"),
        (gzip.compress(text(META), mtime=0)[:12] + b"damaged beyond repair", "", "is damaged"),
    ],
)
def test_invalid_recordings(tmp_path: Path, data: bytes, where: str, message: str) -> None:
    path = put(tmp_path, data)
    with pytest.raises(BadInput) as caught:
        list(read_recording(path))
    assert f"{path}{where}: " in caught.value.message
    assert message in caught.value.message


@given(st.integers(0, 80), st.sampled_from(["[", '{"a":', '["[[", {"]":[], "b":']), st.integers(0, 200))
def test_the_depth_of_a_line_is_limited(
    tmp_path_factory: pytest.TempPathFactory, depth: int, bracket: str, in_text: int
) -> None:
    """The entry is the first level; brackets in text do not count."""
    closing = {"[": "]", '{"a":': "}"}.get(bracket, "}]")
    value = f"{bracket * depth}{json.dumps('[{' * in_text)}{closing * depth}"
    entry = f'{{"t":2.0,"kind":"host","type":"x","node":"n","object":{value}}}'
    path = put(tmp_path_factory.mktemp("deep"), text(META, entry))
    levels = 1 + depth * len(closing)
    if levels <= 64:
        assert len(list(read_recording(path))) == 2
        return
    with pytest.raises(BadInput, match="nested more than 64 levels deep") as caught:
        list(read_recording(path))
    assert caught.value.problems[0].line == 2
    column = caught.value.problems[0].column
    assert entry[column - 1] in "[{"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="file not found"):
        list(read_recording(tmp_path / "nothing"))
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        list(read_recording(tmp_path))


def test_blank_lines_and_a_last_line_without_an_end(tmp_path: Path) -> None:
    data = text(META, "") + json.dumps(POD).encode()
    assert [found.kind for found in read_recording(put(tmp_path, data))] == ["meta", "pods"]


def test_a_truncated_tail_is_a_blind_window(tmp_path: Path) -> None:
    data = text(META) + b'{"t": 2.0, "kind": "po'
    lines = list(read_recording(put(tmp_path, data)))
    assert [(found.kind, found.type) for found in lines] == [("meta", "recording"), ("blind", "recording")]
    assert b"not complete" in bytes(lines[-1].object)


@given(st.integers(min_value=30, max_value=2000))
def test_every_prefix_of_a_gzip_is_readable(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    many = text(META, *({"t": 2.0 + i, "kind": "host", "type": "x", "object": i * i} for i in range(400)))
    whole = gzip.compress(many, mtime=0)
    path = put(tmp_path_factory.mktemp("prefix"), whole[:length])
    try:
        lines = list(read_recording(path))
    except BadInput as error:
        assert "is empty" in error.message or "not a JSON line" in error.message  # noqa: PT017 - either is right
        return
    if length >= len(whole):
        assert len(lines) == 401
    else:
        assert (lines[-1].kind, lines[-1].type) == ("blind", "recording")


def test_an_endless_line_is_an_error_before_memory_runs_out(tmp_path: Path) -> None:
    """Sixty bytes of gzip can stand for a megabyte."""
    bomb = gzip.compress(text(META) + b"[" * (128 << 20), compresslevel=1, mtime=0)
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="is longer than 32 MiB"):
            list(read_recording(put(tmp_path, bomb)))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_a_bookmark_moves_the_end(tmp_path: Path) -> None:
    bookmark = {"t": 9.0, "kind": "pods", "type": "BOOKMARK", "object": {"metadata": {}, "spec": {"containers": None}}}
    timeline = build_timeline(read_recording(put(tmp_path, text(META, POD, bookmark))))
    assert (timeline.start, timeline.end, len(timeline.entries)) == (1.0, 9.0, 2)


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


def test_an_endless_line_that_grows_is_an_error_before_memory_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.core.store.recording.MAX_LINE_BYTES", 1 << 20)
    file = tmp_path / "recording.jsonl.gz"
    file.write_bytes(gzip.compress(b"x" * (3 << 20)))
    with RecordingTail(file) as tail, pytest.raises(BadInput, match="has a line longer than 1 MiB"):
        list(tail.read())


def test_no_file_to_follow(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        RecordingTail(tmp_path / "recording.jsonl.gz")

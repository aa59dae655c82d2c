"""Recordings: JSON Lines, gzipped, sorted by time (format: design of recordings, ``chaos.model.recording``)."""

from __future__ import annotations

import io
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from chaos.model.errors import BadInput, Problem, bad_input
from chaos.model.recording import CUT_OFF, FORMAT, Line
from chaos.model.timeline import Timeline
from chaos.observers.decode import decode

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's window bits for a gzip header and trailer
_CHUNK = 1 << 18
_LONGEST = 32 << 20  # bytes of a line; a file may be any size
_LINE = msgspec.json.Decoder(Line)


def read_recording(path: Path) -> Iterator[Line]:
    """The lines of a recording, gzipped or plain.

    A tail that was cut off (a killed recorder) is left out and told by a last line of kind ``blind``, type
    ``recording``. Raises BadInput, with file and line, for anything else that is not a recording.
    """
    try:
        with path.open("rb") as file:
            yield from _Reader(str(path)).lines(file)
    except OSError as error:
        raise bad_input(str(path), f"cannot be read: {error.strerror}") from error


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.last = float("-inf")

    def lines(self, file: BinaryIO) -> Iterator[Line]:
        tail = bytearray()
        source = _Bytes(self.name, file)
        for chunk in source:
            first, *others = chunk.split(b"\n")
            tail += first
            if len(tail) > _LONGEST:
                self._fail(self.number + 1, f"is longer than {_LONGEST >> 20} MiB")
            for other in others:
                yield from self._line(bytes(tail))
                tail = bytearray(other)
        if tail.strip():
            yield from self._tail(bytes(tail), source)
        if self.last == float("-inf"):
            raise bad_input(self.name, "is empty", "give a recording (*.jsonl.gz) or a run directory")
        if source.cut:
            yield _cut_off(self.last, source.cut)

    def _tail(self, tail: bytes, source: _Bytes) -> Iterator[Line]:
        """The last line without a newline: whole, or half written."""
        try:
            _LINE.decode(tail)
        except msgspec.DecodeError:
            if not self.number:
                self._fail(1, "is not a recording: not a JSON line")
            source.cut = source.cut or "its last line is not complete"
        else:
            yield from self._line(tail)

    def _line(self, text: bytes) -> Iterator[Line]:
        self.number += 1
        if not text.strip():
            return
        try:
            line = _LINE.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._fail(self.number, f"is not a line of a recording: {error}")
        if self.last == float("-inf"):
            self._first(line)
        elif line.t < self.last:
            self._fail(self.number, f"is out of order: {self.last - line.t:.3f}s earlier than the line before")
        self.last = line.t
        yield line

    def _first(self, line: Line) -> None:
        if line.kind != "meta":
            self._fail(self.number, f"is not a recording: the first line must be of kind meta, not {line.kind}")
        try:
            version = msgspec.json.decode(line.object, type=dict[str, object]).get("format")
        except msgspec.DecodeError:
            version = None
        if version != FORMAT:
            self._fail(self.number, f"has format {version!r}; this version of nodefall reads format {FORMAT}")

    def _fail(self, number: int, message: str) -> None:
        raise BadInput([Problem(self.name, number, 1, message)])


class _Bytes:
    """The bytes of a file, unzipped if they are gzip; ``cut`` says how they ended too early."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.file = file
        self.cut = ""

    def __iter__(self) -> Iterator[bytes]:
        first = self.file.read(_CHUNK)
        chunks: Iterator[bytes] = iter(lambda: self.file.read(_CHUNK), b"")
        if first[:2] == _GZIP_MAGIC:
            yield from self._unzip(first, chunks)
            return
        yield first
        yield from chunks

    def _unzip(self, data: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
        unzip = zlib.decompressobj(_GZIP)
        while data:
            try:
                yield unzip.decompress(data, _CHUNK)  # a few zeroed bytes may stand for a thousand times as many
            except zlib.error as error:
                raise bad_input(self.name, f"is damaged: {error}") from error
            data = unzip.unconsumed_tail or unzip.unused_data
            if unzip.eof:
                unzip = zlib.decompressobj(_GZIP)  # files may hold several gzip members
                data = data or next(chunks, b"")
                if not data:
                    return
            else:
                data = data or next(chunks, b"")
        yield unzip.flush()
        self.cut = "the file ends before its end mark"


def _cut_off(t: float, reason: str) -> Line:
    window = msgspec.json.encode({"from": t, "to": None, "reason": reason})
    return Line(t, "blind", CUT_OFF, msgspec.Raw(window))


class RecordingWriter:
    """Writes a recording line by line; whatever was written can be read, also after a SIGKILL.

    Lines of several observers may come a moment out of order: a line is never given a time before the last one's.
    """

    def __init__(self, path: Path) -> None:
        self._file: io.BufferedWriter = path.open("xb")
        self._zip = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._lock = threading.Lock()
        self._last = 0.0

    def write(self, line: Line) -> None:
        """Append one line and flush it to the operating system."""
        with self._lock:
            if line.t < self._last:
                line = msgspec.structs.replace(line, t=self._last)
            self._last = line.t
            self._file.write(self._zip.compress(msgspec.json.encode(line) + b"\n"))
            self._file.write(self._zip.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        """Write the end mark; harmless twice."""
        with self._lock:
            if not self._file.closed:
                self._file.write(self._zip.flush())
                self._file.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def build_timeline(lines: Iterable[Line]) -> Timeline:
    """All lines decoded into a timeline. Raises what ``lines`` raises."""
    timeline = Timeline()
    for line in lines:
        entry = decode(line, timeline.next_seq())
        if entry is not None:
            timeline.add(entry)
        else:
            timeline.end = max(timeline.end, line.t)  # a bookmark says that we were still watching
    return timeline

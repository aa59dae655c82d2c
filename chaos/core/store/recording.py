"""Recordings: JSON Lines, gzipped, sorted by time (format: docs/recordings.md, ``chaos.core.recording``).

A recording that another process is writing is read as it grows, frame by frame.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn, Self

import msgspec

from chaos.core.decode import decode
from chaos.core.errors import BadInput, Problem, bad_input
from chaos.core.files import missing_file_hint, open_regular
from chaos.core.recording import FORMAT, TRUNCATED_RECORDING, EntryKind, RecordingEntry
from chaos.core.timeline import Timeline

_GZIP_MAGIC = b"\x1f\x8b"
GZIP_WBITS = 31  # zlib's window bits for a gzip header and trailer
_CHUNK = 1 << 18
MAX_LINE_BYTES = 32 << 20  # bytes of a line; a file may be any size
_MAX_EMPTY_LINES = 1000
_MAX_EXPANSION, _MAX_EXPANDED = 100, 64 << 20  # times its size, and bytes besides; recordings expand to 20 times theirs
_MAX_DEPTH = 64  # levels of nested arrays and objects in a line: those of recorded Kubernetes objects have up to 14
_BYTE = re.compile(r"\(byte (\d+)\)")  # in messages of msgspec
_LEVELS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
# A string or a bracket. A quote without an end begins a string, too: possessive, it never tries again.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[][{}]', re.DOTALL)
_ENTRY_DECODER = msgspec.json.Decoder(RecordingEntry)


def read_recording(path: Path) -> Iterator[RecordingEntry]:
    """The entries of a recording, gzipped or plain.

    A truncated tail (of a killed recorder) is left out and reported by a last entry of kind ``blind``, type
    ``recording``. Raises BadInput, with file, line and column, for anything else that is not a recording; but what
    decodes an object reports one that cannot be decoded.
    """
    try:
        with open_regular(path) as file:
            yield from LineReader(str(path)).entries(file)
    except FileNotFoundError as error:
        raise bad_input(str(path), "file not found", missing_file_hint(path)) from error
    except OSError as error:
        raise bad_input(str(path), f"cannot be read: {error.strerror}") from error


class LineReader:
    """Entries of the lines of one recording, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = self._empty = 0
        self.last_time = float("-inf")

    def entries(self, file: BinaryIO) -> Iterator[RecordingEntry]:
        tail = bytearray()
        source = _Bytes(self.name, file)
        for chunk in source:
            first, *others = chunk.split(b"\n")
            tail += first
            if len(tail) > MAX_LINE_BYTES:
                self._fail(self.number + 1, f"is longer than {MAX_LINE_BYTES >> 20} MiB")
            for other in others:
                yield from self.read(bytes(tail))
                tail = bytearray(other)
        if tail.strip():
            yield from self._tail(bytes(tail), source)
        if self.last_time == float("-inf"):
            raise bad_input(self.name, "is empty", "give a recording (*.jsonl.gz) or a run directory")
        if source.truncation:
            yield _truncation_entry(self.last_time, source.truncation)

    def _tail(self, tail: bytes, source: _Bytes) -> Iterator[RecordingEntry]:
        """A last line without a newline: complete, or truncated."""
        try:
            _ENTRY_DECODER.decode(tail)
            tail.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            if not self.number:
                self._fail(1, "is not a recording: not a JSON line")
            source.truncation = source.truncation or "its last line is not complete"
        except RecursionError:
            yield from self.read(tail)  # raises
        else:
            yield from self.read(tail)

    def read(self, text: bytes) -> Iterator[RecordingEntry]:
        """The entry of the next line, none of an empty one. Raises BadInput."""
        self.number += 1
        if not text.strip():
            self._empty += 1
            if self._empty > _MAX_EMPTY_LINES:
                self._fail(self.number, f"has more than {_MAX_EMPTY_LINES} empty lines")
            return
        entry = self._decode(text)
        if self.last_time == float("-inf"):
            self._check_meta(entry)
        elif entry.t < self.last_time:
            early = self.last_time - entry.t
            self._fail(self.number, f"is out of order: {early:.3f} s earlier than the previous entry")
        self.last_time = entry.t
        yield entry

    def _decode(self, text: bytes) -> RecordingEntry:
        if (bracket := _deep_position(text)) is not None:
            self._fail(self.number, f"is nested more than {_MAX_DEPTH} levels deep", bracket)
        try:
            entry = _ENTRY_DECODER.decode(text)
            text.decode()  # msgspec does not look into the object of an entry
            if self.last_time == float("-inf"):
                msgspec.json.decode(entry.object)
        except UnicodeDecodeError:
            self._fail(self.number, "is not an entry of a recording: it is not UTF-8", _stray_position(text))
        except msgspec.DecodeError as error:
            byte = _BYTE.search(str(error))
            self._fail(self.number, f"is not an entry of a recording: {error}", int(byte[1]) if byte else 0)
        return entry

    def _check_meta(self, entry: RecordingEntry) -> None:
        if entry.kind != "meta":
            self._fail(self.number, f"is not a recording: the first entry must be of kind meta, not {entry.kind}")
        try:
            version = msgspec.json.decode(entry.object, type=dict[str, object]).get("format")
        except msgspec.DecodeError:
            version = None
        if version != FORMAT:
            self._fail(self.number, f"has format {version!r}; this version of nodefall reads format {FORMAT}")

    def _fail(self, number: int, message: str, byte: int = 0) -> NoReturn:
        raise BadInput([Problem(self.name, number, byte + 1, message)])


def _stray_position(text: bytes) -> int:
    """Position of the first byte that is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _deep_position(text: bytes) -> int | None:
    """The position of the bracket that opens one level too many, or None."""
    if text.count(b"{") + text.count(b"[") <= _MAX_DEPTH:
        return None  # most lines
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += _LEVELS.get(token[0], 0)
        if depth > _MAX_DEPTH:
            return token.start()
    return None


class _Bytes:
    """The bytes of a file, unzipped if they are gzip; ``truncation`` is how they ended too early, or ""."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.file = file
        self.truncation = ""

    def __iter__(self) -> Iterator[bytes]:
        first = self.file.read(_CHUNK)
        chunks: Iterator[bytes] = iter(lambda: self.file.read(_CHUNK), b"")
        if first[:2] == _GZIP_MAGIC:
            yield from self._unzip(first, chunks)
            return
        yield first
        yield from chunks

    def _unzip(self, data: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
        unzip, size = zlib.decompressobj(GZIP_WBITS), 0
        most = _MAX_EXPANSION * os.fstat(self.file.fileno()).st_size + _MAX_EXPANDED
        while data:
            try:
                plain = unzip.decompress(data, _CHUNK)  # a few zeroed bytes may stand for a thousand times as many
            except zlib.error as error:
                raise bad_input(self.name, f"is damaged: {error}") from error
            size += len(plain)
            if size > most:
                raise bad_input(self.name, f"expands to more than {_MAX_EXPANSION} times its size")
            yield plain
            data = unzip.unconsumed_tail or unzip.unused_data
            if unzip.eof:
                unzip = zlib.decompressobj(GZIP_WBITS)  # files may hold several gzip members
                data = data or next(chunks, b"")
                if not data:
                    return
            else:
                data = data or next(chunks, b"")
        yield unzip.flush()
        self.truncation = "the file ends before its end mark"


def _truncation_entry(t: float, reason: str) -> RecordingEntry:
    window = msgspec.json.encode({"from": t, "to": None, "reason": reason})
    return RecordingEntry(t, EntryKind.BLIND, TRUNCATED_RECORDING, msgspec.Raw(window))


def build_timeline(entries: Iterable[RecordingEntry]) -> Timeline:
    """A timeline of all decoded entries. Raises what ``entries`` raises."""
    timeline = Timeline()
    for entry in entries:
        decoded = decode(entry, timeline.next_seq())
        if decoded is not None:
            timeline.add(decoded)
        else:
            timeline.end = max(timeline.end, entry.t)  # a bookmark proves that the watch was still open
    return timeline


class RecordingTail:
    """The entries of a growing gzipped recording; each is returned once. Raises BadInput.

    A line that is not written to its end yet is left for the next call.
    """

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise bad_input(self._name, f"cannot be read: {error.strerror}") from error
        self._zip = zlib.decompressobj(GZIP_WBITS)
        self._lines = LineReader(self._name)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self) -> Iterator[RecordingEntry]:
        """The entries that were written since the last call."""
        while data := self._read_file():
            while data and not self._zip.eof:
                try:
                    plain = self._zip.decompress(data, _CHUNK)
                except zlib.error as error:
                    raise bad_input(self._name, f"is damaged: {error}") from error
                data = self._zip.unconsumed_tail
                yield from self._entries(plain)

    def _read_file(self) -> bytes:
        try:
            return self._file.read(_CHUNK)
        except OSError as error:
            raise bad_input(self._name, f"cannot be read: {error.strerror}") from error

    def _entries(self, plain: bytes) -> Iterator[RecordingEntry]:
        *lines, self._rest = (self._rest + plain).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise bad_input(self._name, f"has a line longer than {MAX_LINE_BYTES >> 20} MiB")
        for line in lines:
            yield from self._lines.read(line)

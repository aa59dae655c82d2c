"""A recording that another process is writing: read as it grows, frame by frame."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from chaos.core.errors import bad_input
from chaos.core.recording import RecordingEntry
from chaos.core.store.recording import GZIP_WBITS, MAX_LINE_BYTES, LineReader

_CHUNK = 1 << 18


class RecordingTail:
    """The entries of a growing gzipped recording; each is returned once. Raises BadInput.

    A line that is not written to its end yet is left for the next call.
    """

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise bad_input(self._name, f"cannot be read: {error.strerror}") from error
        self._zip = zlib.decompressobj(GZIP_WBITS)
        self._lines = LineReader(self._name, checks_objects=False)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self) -> Iterator[RecordingEntry]:
        """What has been written since the last call."""
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

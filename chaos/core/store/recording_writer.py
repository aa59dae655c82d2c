"""Writer of recordings: gzipped JSON Lines, flushed frame by frame (docs/adr/0008-recordings-in-gzip-frames.md)."""

from __future__ import annotations

import io
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from chaos.core.files import private_opener
from chaos.core.recording import RecordingEntry
from chaos.core.threads import ContextThread

FRAME_ENTRIES = 100
FRAME_SECONDS = 0.1  # wall seconds after which a frame is written, however few entries it has
_MAX_PENDING = 20_000  # entries; then a slow disk makes the observers wait
_LEVEL = 3  # of zlib: a quarter of the time that single entries take at level 6, for the same size
_GZIP_WBITS = 31  # zlib's window bits for a gzip header and trailer


class RecordingWriter:
    """Writes a recording in frames of about 100 entries, at least every 100 ms, in a separate thread.

    Every frame can be read once it is written, also after a SIGKILL, which loses at most the frame in progress. Entries
    of several observers may arrive slightly out of order: the time of an entry is never before the last one's.
    """

    def __init__(self, path: Path) -> None:
        self._file: io.BufferedWriter = open(path, "xb", opener=private_opener)  # noqa: SIM115 - closed by close()
        self._zip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
        self._encoder = msgspec.json.Encoder()
        self._changed = threading.Condition(threading.Lock())
        self._pending: list[RecordingEntry] = []
        self._last_time = 0.0
        self._is_closing = False
        self._failure: OSError | None = None
        self._thread = ContextThread(self._write_frames, "recording")
        self._thread.start()

    def write(self, entry: RecordingEntry) -> None:
        """Append one entry. Raises the OSError with which an earlier frame could not be written."""
        _require_encodable(entry)
        with self._changed:
            if self._is_closing:
                raise ValueError("write to a closed recording")
            while len(self._pending) >= _MAX_PENDING and self._failure is None:
                self._changed.wait()
            if self._failure is not None:
                raise self._failure
            if entry.t < self._last_time:
                entry = msgspec.structs.replace(entry, t=self._last_time)
            self._last_time = entry.t
            self._pending.append(entry)
            if len(self._pending) in (1, FRAME_ENTRIES):
                self._changed.notify_all()

    def close(self) -> None:
        """Write the rest and the end mark; harmless twice. Raises the OSError of a frame that could not be written."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        if self._file.closed:
            return
        with self._file:
            if self._failure is not None:
                raise self._failure
            self._file.write(self._zip.flush())

    def _write_frames(self) -> None:
        failure: OSError | None = OSError("the thread that writes the recording has crashed")
        try:
            while frame := self._next_frame():
                self._file.write(self._zip.compress(self._encoder.encode_lines(frame)))
                self._file.write(self._zip.flush(zlib.Z_SYNC_FLUSH))
                self._file.flush()
            failure = None
        except OSError as error:
            failure = error
        finally:
            with self._changed:
                self._failure = failure
                self._changed.notify_all()

    def _next_frame(self) -> list[RecordingEntry]:
        """Wait for a frame that is full or old enough; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._is_closing)
            self._changed.wait_for(
                lambda: len(self._pending) >= FRAME_ENTRIES or self._is_closing, timeout=FRAME_SECONDS
            )
            frame, self._pending = self._pending, []
            if len(frame) >= _MAX_PENDING:
                self._changed.notify_all()
            return frame

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_recording(path: Path, entries: Iterable[RecordingEntry]) -> None:
    """Write a recording that is complete: the same entries give the same bytes. Raises OSError."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    data = packer.compress(msgspec.json.Encoder().encode_lines(entries)) + packer.flush()
    with open(path, "xb", opener=private_opener) as file:
        file.write(data)


def _require_encodable(entry: RecordingEntry) -> None:
    """Raises UnicodeEncodeError here, in the observer at fault, for text that UTF-8 cannot hold."""
    for text in (entry.type, entry.node, entry.note):
        if text is not msgspec.UNSET and not text.isascii():
            text.encode()

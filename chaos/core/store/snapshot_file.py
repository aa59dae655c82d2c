"""Snapshots on disk: JSON lines, compressed with gzip, readable by the owner only."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

from chaos.core.errors import UsageError
from chaos.core.store.private_files import write_private

_LEVEL = 6


class SnapshotFile:
    """Collects lines by kind, compressed in memory; the header, which is known last, becomes the first line.

    Each kind is a separate gzip member, and can be begun again.
    """

    def __init__(self) -> None:
        self._members: dict[str, tuple[io.BytesIO, gzip.GzipFile]] = {}
        self.counts: dict[str, int] = {}

    def begin(self, kind: str) -> None:
        """Discard the lines of this kind."""
        buffer = io.BytesIO()
        self._members[kind] = buffer, gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=_LEVEL, mtime=0)
        self.counts[kind] = 0

    def add(self, kind: str, line: bytes) -> None:
        """Add a line, without its newline."""
        if kind not in self._members:
            self.begin(kind)
        file = self._members[kind][1]
        file.write(line)
        file.write(b"\n")
        self.counts[kind] += 1

    def write(self, path: Path, header: bytes) -> None:
        """Replace the file ``path`` at once. Raises UsageError if it cannot be written."""
        parts = [gzip.compress(header + b"\n", mtime=0)]
        for buffer, file in self._members.values():
            file.close()
            parts.append(buffer.getvalue())
        partial = path.with_name(f".{path.name}.partial")
        try:
            write_private(partial, b"".join(parts))
            os.replace(partial, path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another file with --out") from error

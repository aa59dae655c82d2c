"""Outputs of a program behind another one: each ends with a line of a mark and the exit code of the inner program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chaos.machines.transports.channel_io import LIMIT

_TAIL = 128  # bytes at the end of an output that are searched for the mark and the exit code


@dataclass(slots=True)
class MarkedOutput:
    """One output: its stored data, and its end, which is searched for ``mark``. ``exit``: what follows the mark."""

    name: str
    mark: str
    data: bytearray = field(default_factory=bytearray)
    tail: bytes = b""
    is_truncated: bool = False
    is_closed: bool = False
    exit: int | None = None

    @property
    def text(self) -> str:
        return self._end().split(bytes(self.data))[0].decode("utf-8", "replace")

    def append(self, data: bytes) -> None:
        """Take what has come; nothing for the end of the output. The mark ends it too."""
        room = LIMIT - len(self.data)
        self.data += data[:room]
        self.is_truncated |= len(data) > room
        self.tail += data
        self.is_closed |= not data
        if match := self._end().search(self.tail):
            self.exit, self.is_closed = int(match[1]), True
        self.tail = self.tail[-_TAIL:]

    def take_line(self) -> str | None:
        """Remove and return the first line, None without a whole one."""
        line, newline, rest = bytes(self.data).partition(b"\n")
        if not newline:
            return None
        self.data[:] = rest
        return line.decode("utf-8", "replace")

    def _end(self) -> re.Pattern[bytes]:
        return re.compile(rf"{self.mark} (\d+)\n".encode())


def truncation_note(*outputs: MarkedOutput) -> str:
    """Which outputs were truncated, "" if none was."""
    truncated = [output.name for output in outputs if output.is_truncated]
    return f"{' and '.join(truncated)} truncated at 1 MiB" if truncated else ""

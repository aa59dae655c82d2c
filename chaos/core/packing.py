"""Old observations, packed: hardly anybody asks for them again, but whoever does finds them unchanged.

What is asked for stays unpacked for as long as it is asked for again and again.
"""

from __future__ import annotations

import zlib
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

PAUSE = 20.0  # seconds after which an observation that no one asked for is packed
FEW = 100_000  # entries, some 100 MiB, up to which nothing is packed
_LATE = 3  # pauses, after which two things are packed with one entry, and not one, which is as many as it adds at most
_BLOCK = 1 << 16  # bytes that are compressed together, twice as many as zlib looks back: it takes 0.2 ms to find a part


class Packable(Protocol):
    """Something whose old parts can be packed."""

    def pack(self) -> bool:
        """Pack what is old; false if somebody asked for it since the last call."""


class Block:
    """Parts that were packed one after the other, compressed together: they are alike, and each is short.

    It lives for as long as one of its parts is packed. What is asked for again and again leaves its block once, and
    shares the next ones with others of its kind, which are freed with it.
    """

    __slots__ = ("__weakref__", "_ends", "_packed", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # until it is full
        self._ends = array("I")
        self._packed = b""

    def append(self, part: bytes) -> int:
        """Add a part; its index."""
        self._parts.append(part)
        self._ends.append(len(part) + (self._ends[-1] if self._ends else 0))
        if self.is_full:
            packer = zlib.compressobj(1, wbits=-15)
            self._packed = b"".join((packer.compress(b"".join(self._parts)), packer.flush()))
            self._parts = []
        return len(self._ends) - 1

    @property
    def is_full(self) -> bool:
        return bool(self._ends) and self._ends[-1] >= _BLOCK

    def unpack(self) -> bytes:
        """All parts of a full block, one after the other."""
        return zlib.decompress(self._packed, -15, self._ends[-1])

    def part(self, index: int, plain: bytes) -> bytes | memoryview:
        """A part; ``plain``: all of them, if the block is full."""
        if not self.is_full:
            return self._parts[index]
        return memoryview(plain)[self._ends[index - 1] if index else 0 : self._ends[index]]


class Packer:
    """Packs lists of one type, many in a block."""

    def __init__(self, type_: Any, later: Callable[[Packable], object]) -> None:
        """``later`` has something packed after a pause."""
        self.later = later
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[type_])
        self._open = Block()
        self._last: tuple[Block, bytes] | None = None  # a full block that was unpacked: mostly, more is asked of it

    def pack(self, items: list[Any]) -> tuple[Block, int]:
        """Pack a list: its block, and its index in it."""
        block = self._open
        index = block.append(self._encoder.encode(items))
        if block.is_full:
            self._open = Block()
        return block, index

    def unpack(self, block: Block, index: int) -> list[Any]:
        last = self._last
        if block.is_full and (last is None or last[0] is not block):
            last = self._last = block, block.unpack()
        found: list[Any] = self._decoder.decode(block.part(index, last[1] if last else b""))
        return found


class Packing:
    """What a timeline packs, and when."""

    def __init__(self, pause: float = PAUSE, few: int = FEW) -> None:
        self._pause, self._few = pause, few
        self._entries = 0
        self._now = 0.0  # time of the newest entry
        self._packers: dict[Any, Packer] = {}
        self._due: deque[tuple[float, Packable]] = deque()

    def packer(self, type_: Any) -> Packer:
        found = self._packers.get(type_)
        if found is None:
            found = self._packers[type_] = Packer(type_, self.later)
        return found

    def later(self, item: Packable) -> None:
        """Pack ``item`` after a pause."""
        self._due.append((self._now + self._pause, item))

    def advance(self, now: float) -> None:
        """Pack some of what is due at ``now``, the time of the newest entry."""
        self._now = now
        self._entries += 1
        if self._entries <= self._few:
            return
        for at in (now, now - _LATE * self._pause):
            if not self._due or self._due[0][0] > at:
                return
            _, item = self._due.popleft()
            if not item.pack():
                self.later(item)

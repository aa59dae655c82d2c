"""Old observations, packed: hardly anybody asks for them again, but whoever does finds them unchanged.

What is asked for stays unpacked for as long as it is asked for again and again.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

PAUSE = 20.0  # seconds after which an observation that no one asked for is packed
FEW = 100_000  # entries, some 100 MiB, up to which nothing is packed
_LATE = 3  # pauses, after which two things are packed with one entry, and not one, which is as many as it adds at most
_WINDOW = 1 << 15  # bytes that zlib looks back


class Packable(Protocol):
    """Something whose old parts can be packed."""

    def pack(self) -> bool:
        """Pack what is old; false if somebody asked for it since the last call."""


class Packer:
    """Packs lists of one type. All share the words of the first, as each is short and they are alike."""

    def __init__(self, type_: Any, later: Callable[[Packable], object]) -> None:
        """``later`` has something packed after a pause."""
        self.later = later
        self._decoder = msgspec.msgpack.Decoder(list[type_])
        self._words = b""

    def pack(self, items: list[Any]) -> bytes:
        plain = msgspec.msgpack.encode(items)
        self._words = self._words or plain[-_WINDOW:]
        packer = zlib.compressobj(1, wbits=-15, zdict=self._words)
        return packer.compress(plain) + packer.flush()

    def unpack(self, packed: bytes) -> list[Any]:
        unpacker = zlib.decompressobj(-15, self._words)
        return self._decoder.decode(unpacker.decompress(packed) + unpacker.flush())


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

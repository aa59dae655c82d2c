"""Memory of a timeline: equal parts of objects are stored once, and old observations are compressed.

Most of a version is as in the one before, and most pods of a set are alike. Hardly anyone asks for old observations
again, but whoever does finds them unchanged. What is asked for stays unpacked for as long as it is asked for again and
again.
"""

from __future__ import annotations

import zlib
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from chaos.core.kube import Metadata, Node, Pod

PAUSE = 20.0  # seconds after which an observation that no one asked for is packed
FEW = 100_000  # entries, some 100 MiB, up to which nothing is packed
_LATE = 3  # pauses, after which two things are packed with one entry, and not one, which is as many as it adds at most
_BLOCK = 1 << 16  # bytes that are compressed together, twice as many as zlib looks back: it takes 0.2 ms to find a part
_MANY = 20_000  # parts; as many that are all different share nothing
_CONDITION = ("type", "status", "reason", "message")
_POD_SPEC = ("tolerations", "containers", "volumes", "node_selector", "affinity", "topology_spread_constraints")
_POD_STATUS = ("conditions", "container_statuses", "init_container_statuses")
_NODE_STATUS = ("addresses", "node_info", "capacity", "allocatable", "volumes_in_use", "volumes_attached")


class Packable(Protocol):
    """Something whose old parts can be packed."""

    def pack(self) -> bool:
        """Compress old parts; false if a part was accessed since the last call."""


class Block:
    """Parts that are compressed together, because they are short and similar.

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
    """Decides what a timeline compresses, and when."""

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
        """Compress some of the parts that are due at ``now``, the time of the newest entry."""
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


class Sharing:
    """Replaces parts of objects by equal parts of earlier objects. The parts are immutable."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bytes], Any] = {}
        self._texts: dict[str, str] = {}

    def share(self, obj: Any, before: Any) -> None:
        """Replace parts of ``obj``. ``before``: its version before, None for the first."""
        if before is None:
            if isinstance(obj, Pod):
                self._share_first(obj)
            return
        _share_metadata(obj.metadata, before.metadata)
        if isinstance(obj, Pod | Node):
            if obj.spec == before.spec:
                obj.spec = before.spec
            if obj.status == before.status:
                obj.status = before.status
            elif obj.status is not None and before.status is not None:
                _share_fields(obj.status, before.status, _POD_STATUS if isinstance(obj, Pod) else _NODE_STATUS)

    def _share_first(self, pod: Pod) -> None:
        """Parts that the pods of a set have in common."""
        pod.metadata.namespace = self._text(pod.metadata.namespace)
        self._share_parts(pod.metadata, ("labels", "owner_references"))
        if pod.spec is not None:
            self._share_texts(pod.spec, ("node_name",))
            self._share_parts(pod.spec, _POD_SPEC)
        for condition in (pod.status.conditions if pod.status else None) or ():
            self._share_texts(condition, _CONDITION)

    def _share_texts(self, obj: Any, names: tuple[str, ...]) -> None:
        for name in names:
            if text := getattr(obj, name):
                setattr(obj, name, self._text(text))

    def _share_parts(self, obj: Any, names: tuple[str, ...]) -> None:
        for name in names:
            part = getattr(obj, name)
            if part is not None:
                setattr(obj, name, self._part(name, part))

    def _text(self, text: str) -> str:
        if len(self._texts) > _MANY:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def _part(self, name: str, part: Any) -> Any:
        if len(self._parts) > _MANY:
            self._parts.clear()
        return self._parts.setdefault((name, msgspec.msgpack.encode(part)), part)


def _share_metadata(now: Metadata, before: Metadata) -> None:
    """As ``_share_fields``, in half the time: this is for each entry."""
    if now.name == before.name:
        now.name = before.name
    if now.namespace == before.namespace:
        now.namespace = before.namespace
    if now.uid == before.uid:
        now.uid = before.uid
    if now.creation_timestamp == before.creation_timestamp:
        now.creation_timestamp = before.creation_timestamp
    if now.labels == before.labels:
        now.labels = before.labels
    if now.owner_references == before.owner_references:
        now.owner_references = before.owner_references


def _share_fields(now: Any, before: Any, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(before, name)
        if value is not None and getattr(now, name) == value:
            setattr(now, name, value)

"""A YAML document as a tree that remembers where everything stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chaos.load.scalars import Scalar


class Mark(NamedTuple):
    """A place in a file; both count from 1."""

    line: int
    column: int


@dataclass(slots=True)
class ScalarNode:
    mark: Mark
    value: Scalar
    size: int = 1


@dataclass(slots=True)
class SequenceNode:
    """A sequence. ``size`` counts all nodes below, aliases as often as they are used."""

    mark: Mark
    items: list[Node] = field(default_factory=list)
    size: int = 1


@dataclass(slots=True)
class MappingEntry:
    key: Mark
    node: Node


@dataclass(slots=True)
class MappingNode:
    mark: Mark
    items: dict[str, MappingEntry] = field(default_factory=dict)
    size: int = 1


Node = ScalarNode | SequenceNode | MappingNode
Path = tuple[str | int, ...]


def to_builtins(node: Node) -> Any:
    """The tree as dicts, lists and scalars."""
    if isinstance(node, MappingNode):
        return {key: to_builtins(entry.node) for key, entry in node.items.items()}
    if isinstance(node, SequenceNode):
        return [to_builtins(item) for item in node.items]
    return node.value


def child_of(node: Node, part: str | int) -> MappingEntry | None:
    """The entry of ``node`` named by ``part``; for an item of a sequence its own mark stands for the key."""
    if isinstance(node, MappingNode) and isinstance(part, str):
        return node.items.get(part)
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.items):
        return MappingEntry(node.items[part].mark, node.items[part])
    return None


class Place(NamedTuple):
    """Where a path leads: ``entry`` is the last one that exists, ``path`` the parts that led there."""

    entry: MappingEntry
    path: Path


def find(root: Node, parts: Iterable[str | int]) -> Place:
    """Follow ``parts``, leaving out those that do not exist in the tree (pydantic adds names of its own)."""
    entry, path = MappingEntry(root.mark, root), []
    for part in parts:
        below = child_of(entry.node, part)
        if below is not None:
            entry = below
            path.append(part)
    return Place(entry, tuple(path))

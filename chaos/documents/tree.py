"""YAML documents as trees of nodes with positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chaos.documents.scalars import Scalar


class Mark(NamedTuple):
    """A position in a file; both numbers count from 1."""

    line: int
    column: int


@dataclass(slots=True)
class ScalarNode:
    mark: Mark
    value: Scalar
    size: int = 1


@dataclass(slots=True)
class SequenceNode:
    """A sequence. ``size`` counts all nodes below, aliased ones as often as they are used."""

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
    """The tree as dict, list and scalars."""
    if isinstance(node, MappingNode):
        return {key: to_builtins(entry.node) for key, entry in node.items.items()}
    if isinstance(node, SequenceNode):
        return [to_builtins(item) for item in node.items]
    return node.value


def child_of(node: Node, part: str | int) -> MappingEntry | None:
    """The entry of ``node`` at ``part``, a key or an index; an item of a sequence has its own mark as the key's."""
    if isinstance(node, MappingNode) and isinstance(part, str):
        return node.items.get(part)
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.items):
        return MappingEntry(node.items[part].mark, node.items[part])
    return None


class Place(NamedTuple):
    """Target of a path: ``entry`` is the last one that exists, ``path`` the parts up to it."""

    entry: MappingEntry
    path: Path


def find(root: Node, parts: Iterable[str | int]) -> Place:
    """Follow ``parts``, skipping those that are not in the tree, as pydantic adds names of union members."""
    entry, path = MappingEntry(root.mark, root), []
    for part in parts:
        below = child_of(entry.node, part)
        if below is not None:
            entry = below
            path.append(part)
    return Place(entry, tuple(path))

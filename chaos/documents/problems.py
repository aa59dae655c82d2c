"""Cursor through a tree of any shape, and the collector of its problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from chaos.core.errors import BadInput, Problem
from chaos.documents.yaml_tree import (
    MappingEntry,
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    SequenceNode,
    child_of,
    to_builtins,
)

T = TypeVar("T")
_MAX_PROBLEMS = 100


class ErrorCollector:
    """Collector of the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, mark: Mark, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, mark.line, mark.column, message, hint))

    def raise_if_any(self) -> None:
        """Raises BadInput with all problems, without duplicates, sorted by position."""
        found = sorted(dict.fromkeys(self.problems), key=lambda p: (p.file != self.file, p.file, p.line, p.column))
        if len(found) > _MAX_PROBLEMS:
            remaining = len(found) - _MAX_PROBLEMS
            found[_MAX_PROBLEMS:] = [Problem(self.file, 0, 0, f"and {remaining} more problems")]
        if found:
            raise BadInput(found)

    def require(self, model: T | None) -> T:
        """``model``, which is None only with a problem. Raises BadInput like :meth:`raise_if_any`."""
        self.raise_if_any()
        assert model is not None  # noqa: S101 - None only with a problem
        return model


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in the tree. A position that does not exist is false and has no text and no items."""

    errors: ErrorCollector
    entry: MappingEntry | None

    @classmethod
    def of(cls, errors: ErrorCollector, root: Node) -> Cursor:
        """The root of a tree."""
        return cls(errors, MappingEntry(root.mark, root))

    def __bool__(self) -> bool:
        return self.entry is not None and not (
            isinstance(self.entry.node, ScalarNode) and self.entry.node.value is None
        )

    def get(self, *parts: str | int) -> Cursor:
        entry = self.entry
        for part in parts:
            entry = child_of(entry.node, part) if entry else None
        return Cursor(self.errors, entry)

    @property
    def node(self) -> Node | None:
        return self.entry.node if self.entry else None

    @property
    def text(self) -> str | None:
        """The text at this position, None for any other value."""
        value = self.node.value if isinstance(self.node, ScalarNode) else None
        return value if isinstance(value, str) else None

    @property
    def value(self) -> object:
        return to_builtins(self.node) if self.node else None

    def keys(self) -> list[str]:
        return list(self.node.items) if isinstance(self.node, MappingNode) else []

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        for key in self.keys():
            yield key, self.get(key)

    def items(self) -> Iterator[Cursor]:
        if isinstance(self.node, SequenceNode):
            for index in range(len(self.node.items)):
                yield self.get(index)

    def report(self, message: str, hint: str = "") -> None:
        """Report a problem with the value at this position."""
        if self.entry:
            self.errors.add(self.entry.node.mark, message, hint)

    def report_key(self, message: str, hint: str = "") -> None:
        """Report a problem with the key at this position."""
        if self.entry:
            self.errors.add(self.entry.key, message, hint)


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Hint with the nearest name, else with all names if there are few, else ""."""
    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    nearest = get_close_matches(wrong.casefold(), folded, 1, 0.6)
    if nearest:
        return f"did you mean {folded[nearest[0]]!r}?"
    return f"known are {', '.join(names)}" if 0 < len(names) <= 12 else ""

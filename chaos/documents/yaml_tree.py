"""YAML text as trees of nodes with positions.

Plain scalars follow the core schema of YAML 1.2: on, off, yes and no are text. Duplicate keys, merge keys, tags and
aliases without an end are problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from chaos.core.errors import BadInput, Problem

Scalar = str | int | float | bool | None
_CONSTANTS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL_OR_HEX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_OLD_OCTAL = re.compile(r"0[0-7]+", re.ASCII)
_MAX_DIGITS = 300  # far beyond any sane number, and below Python's limit for int()
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_TAG = "tag:yaml.org,2002:str"
_MAX_DEPTH = 64
_MAX_ALIASED_NODES = 10_000  # nodes
_SYNTAX_MESSAGES = {
    "mapping values are not allowed in this context": "unexpected ':'; quote text that contains ': '",
    "could not find expected ':'": "missing ':' after a key",
    "did not find expected key": "wrong indentation, or a missing quote or comma",
    "did not find expected '-' indicator": "a list item must begin with '- ' in the same column as the others",
    "did not find expected ',' or ']'": "a list in [...] is not closed, or a comma is missing",
    "did not find expected ',' or '}'": "a mapping in {...} is not closed, or a comma is missing",
    "found unexpected end of stream": "a quote is not closed",
}


def resolve(text: str, *, old_octal: bool = False) -> Scalar:
    """The value of a plain scalar. ``old_octal``: 0644 is 420, as kubectl (YAML 1.1) reads a manifest.

    Raises ValueError for a number with too many digits.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    numeric = _INT.fullmatch(text) or _OCTAL_OR_HEX.fullmatch(text) or _FLOAT.fullmatch(text)
    if not numeric:
        return text
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits is too long; quote it if it is text")
    if old_octal and _OLD_OCTAL.fullmatch(text):
        return int(text, 8)
    if _INT.fullmatch(text):
        return int(text)
    return int(text, 0) if _OCTAL_OR_HEX.fullmatch(text) else float(text)


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


def compose(file: str, text: str, *, old_octal: bool = False) -> list[Node]:
    """Documents of ``text`` without empty ones. Raises BadInput with all problems."""
    composer = _Composer(file, old_octal)
    documents: list[Node] = []
    try:
        events = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                composer.anchors.clear()
                node = composer.node(next(events), events, 0)
                if not (isinstance(node, ScalarNode) and node.value is None):
                    documents.append(node)
    except yaml.YAMLError as error:
        composer.problems.append(_syntax_problem(file, text, error))
    if composer.problems:
        raise BadInput(composer.problems)
    return documents


def _syntax_problem(file: str, text: str, error: yaml.YAMLError) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark or error.context_mark
        where = Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)
        if "tab" in error.problem or _has_tab_at(text, where):
            return Problem(file, *where, "a tab is used for indentation", "use spaces")
        return Problem(file, *where, _SYNTAX_MESSAGES.get(error.problem, error.problem))
    position = getattr(error, "position", 0)
    before = text[:position]
    where = Mark(before.count("\n") + 1, position - before.rfind("\n"))
    return Problem(file, *where, f"a character that YAML does not allow ({getattr(error, 'reason', error)})")


def _has_tab_at(text: str, mark: Mark) -> bool:
    """Whether the line or the one before is indented with a tab; libyaml then reports a later symptom."""
    lines = text.split("\n")[max(0, mark.line - 2) : mark.line]
    return any("\t" in line[: len(line) - len(line.lstrip())] for line in lines)


class _Composer:
    def __init__(self, file: str, old_octal: bool) -> None:
        self.file = file
        self.old_octal = old_octal
        self.problems: list[Problem] = []
        self.aliased_nodes = 0  # nodes that aliases expand to
        self.anchors: dict[str, Node | None] = {}  # None while the node is still open

    def node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        mark = Mark(event.start_mark.line + 1, event.start_mark.column + 1)
        if depth > _MAX_DEPTH:
            raise BadInput([*self.problems, Problem(self.file, *mark, f"nested more than {_MAX_DEPTH} levels deep")])
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, mark)
        if event.anchor:
            self.anchors[event.anchor] = None
        node = self._content(event, events, mark, depth)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _content(self, event: Any, events: Iterator[Any], mark: Mark, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return ScalarNode(mark, self._scalar(event, mark))
        if event.tag is not None:
            self._report_tag(event.tag, mark)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, mark, depth)
        return self._mapping(events, mark, depth)

    def _sequence(self, events: Iterator[Any], mark: Mark, depth: int) -> SequenceNode:
        items = SequenceNode(mark)
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            child = self.node(event, events, depth + 1)
            items.items.append(child)
            items.size += child.size
        return items

    def _mapping(self, events: Iterator[Any], mark: Mark, depth: int) -> MappingNode:
        mapping = MappingNode(mark)
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            plain_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            key = self.node(event, events, depth + 1)
            child = self.node(next(events), events, depth + 1)
            mapping.size += child.size
            if plain_merge:
                self._report(key.mark, "merge keys (<<) are not part of YAML 1.2", "write the keys out")
            elif not isinstance(key, ScalarNode) or not isinstance(key.value, str):
                self._report(key.mark, "a key must be text", "quote it" if isinstance(key, ScalarNode) else "")
            elif key.value in mapping.items:
                first = mapping.items[key.value].key.line
                self._report(key.mark, f"duplicate key {key.value!r}, first in line {first}")
            else:
                mapping.items[key.value] = MappingEntry(key.mark, child)
        return mapping

    def _alias(self, anchor: str | None, mark: Mark) -> Node:
        if anchor is None or anchor not in self.anchors:
            self._report(mark, f"undefined alias: there is no anchor &{anchor} above")
            return ScalarNode(mark, None)
        node = self.anchors[anchor]
        if node is None:
            self._report(mark, f"recursive alias *{anchor}")
            return ScalarNode(mark, None)
        self.aliased_nodes += node.size
        if self.aliased_nodes > _MAX_ALIASED_NODES:
            problem = Problem(self.file, *mark, f"aliases expand to more than {_MAX_ALIASED_NODES} values")
            raise BadInput([*self.problems, problem])
        return node

    def _scalar(self, event: Any, mark: Mark) -> Scalar:
        text: str = event.value
        if event.tag not in (None, "!", _TEXT_TAG):
            self._report_tag(event.tag, mark)
        if event.tag is not None or not event.implicit[0]:
            return text
        try:
            return resolve(text, old_octal=self.old_octal)
        except ValueError as error:
            self._report(mark, str(error))
            return None

    def _report_tag(self, tag: str, mark: Mark) -> None:
        self._report(mark, f"the tag {tag!r} is not supported", "remove it")

    def _report(self, mark: Mark, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, *mark, message, hint))

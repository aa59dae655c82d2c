"""YAML text to trees: strict about what YAML lets pass in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from chaos.load.scalars import Scalar, resolve
from chaos.load.tree import Entry, Items, Leaf, Mapping, Mark, Node
from chaos.model.errors import BadInput, Problem

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_TAG = "tag:yaml.org,2002:str"
_MOST_DEPTH = 64
_MOST_FROM_ALIASES = 10_000  # nodes
_SYNTAX = {
    "mapping values are not allowed in this context": "a ':' that does not belong here; put text with ': ' in quotes",
    "could not find expected ':'": "a ':' is missing after a key",
    "did not find expected key": "the indentation does not fit, or a quote or comma is missing",
    "did not find expected '-' indicator": "a list item must begin with '- ' in the column of the others",
    "did not find expected ',' or ']'": "a list in [...] is not closed, or a comma is missing",
    "did not find expected ',' or '}'": "a mapping in {...} is not closed, or a comma is missing",
    "found unexpected end of stream": "a quote is not closed",
}


def compose(file: str, text: str, *, old_octal: bool = False) -> list[Node]:
    """The documents of ``text``; empty ones are left out. Raises BadInput with all problems."""
    composer = _Composer(file, old_octal)
    documents: list[Node] = []
    try:
        events = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                composer.anchors.clear()
                node = composer.node(next(events), events, 0)
                if not (isinstance(node, Leaf) and node.value is None):
                    documents.append(node)
    except yaml.YAMLError as error:
        composer.problems.append(_syntax(file, text, error))
    if composer.problems:
        raise BadInput(composer.problems)
    return documents


def _syntax(file: str, text: str, error: yaml.YAMLError) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark or error.context_mark
        where = Mark(mark.line + 1, mark.column + 1) if mark else Mark(1, 1)
        if "tab" in error.problem or _tab_at(text, where):
            return Problem(file, *where, "a tab is used for indentation", "use spaces")
        return Problem(file, *where, _SYNTAX.get(error.problem, error.problem))
    position = getattr(error, "position", 0)
    before = text[:position]
    where = Mark(before.count("\n") + 1, position - before.rfind("\n"))
    return Problem(file, *where, f"a character that YAML does not allow ({getattr(error, 'reason', error)})")


def _tab_at(text: str, mark: Mark) -> bool:
    """True if the line, or the one before, is indented with a tab: libyaml then names a later symptom."""
    lines = text.split("\n")[max(0, mark.line - 2) : mark.line]
    return any("\t" in line[: len(line) - len(line.lstrip())] for line in lines)


class _Composer:
    def __init__(self, file: str, old_octal: bool) -> None:
        self.file = file
        self.old_octal = old_octal
        self.problems: list[Problem] = []
        self.aliased = 0  # nodes that aliases stand for
        self.anchors: dict[str, Node | None] = {}  # None while the node is still open

    def node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        mark = Mark(event.start_mark.line + 1, event.start_mark.column + 1)
        if depth > _MOST_DEPTH:
            raise BadInput([*self.problems, Problem(self.file, *mark, f"nested more than {_MOST_DEPTH} levels deep")])
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, mark)
        if event.anchor:
            self.anchors[event.anchor] = None
        node = self._own(event, events, mark, depth)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _own(self, event: Any, events: Iterator[Any], mark: Mark, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Leaf(mark, self._scalar(event, mark))
        if event.tag is not None:
            self._tag(event.tag, mark)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(events, mark, depth)
        return self._mapping(events, mark, depth)

    def _items(self, events: Iterator[Any], mark: Mark, depth: int) -> Items:
        items = Items(mark)
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            child = self.node(event, events, depth + 1)
            items.items.append(child)
            items.size += child.size
        return items

    def _mapping(self, events: Iterator[Any], mark: Mark, depth: int) -> Mapping:
        mapping = Mapping(mark)
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            plain_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            key = self.node(event, events, depth + 1)
            child = self.node(next(events), events, depth + 1)
            mapping.size += child.size
            if plain_merge:
                self._problem(key.mark, "merge keys (<<) are not part of YAML 1.2", "write the keys out")
            elif not isinstance(key, Leaf) or not isinstance(key.value, str):
                self._problem(key.mark, "a key must be text", "put it in quotes" if isinstance(key, Leaf) else "")
            elif key.value in mapping.items:
                first = mapping.items[key.value].key.line
                self._problem(key.mark, f"duplicate key {key.value!r}, first in line {first}")
            else:
                mapping.items[key.value] = Entry(key.mark, child)
        return mapping

    def _alias(self, anchor: str | None, mark: Mark) -> Node:
        if anchor is None or anchor not in self.anchors:
            self._problem(mark, f"there is no anchor &{anchor} above")
            return Leaf(mark, None)
        node = self.anchors[anchor]
        if node is None:
            self._problem(mark, f"*{anchor} stands inside what it refers to")
            return Leaf(mark, None)
        self.aliased += node.size
        if self.aliased > _MOST_FROM_ALIASES:
            problem = Problem(self.file, *mark, f"aliases grow to more than {_MOST_FROM_ALIASES} values")
            raise BadInput([*self.problems, problem])
        return node

    def _scalar(self, event: Any, mark: Mark) -> Scalar:
        text: str = event.value
        if event.tag not in (None, "!", _TEXT_TAG):
            self._tag(event.tag, mark)
        if event.tag is not None or not event.implicit[0]:
            return text
        try:
            return resolve(text, old_octal=self.old_octal)
        except ValueError as error:
            self._problem(mark, str(error))
            return None

    def _tag(self, tag: str, mark: Mark) -> None:
        self._problem(mark, f"the tag {tag!r} is not supported", "leave it out")

    def _problem(self, mark: Mark, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, *mark, message, hint))

"""Composer of YAML text into trees; strict about duplicate keys, merge keys, tags and aliases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from chaos.core.errors import BadInput, Problem
from chaos.documents.scalars import Scalar, resolve
from chaos.documents.tree import MappingEntry, MappingNode, Mark, Node, ScalarNode, SequenceNode

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

"""Lookup of the plug-ins that an experiment refers to, and duplicates among the names that it declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from pydantic import BaseModel

from chaos.documents.error_collector import Cursor, did_you_mean
from chaos.documents.pydantic_errors import check_model


class Plugin(Protocol):
    """The common part of actions and assertions."""

    @property
    def params(self) -> type[BaseModel]: ...


P = TypeVar("P", bound=Plugin)


def report_duplicates(cursors: Iterable[Cursor], what: str) -> None:
    """Report each name that an earlier cursor has."""
    first: dict[str, int] = {}
    for cursor in cursors:
        if cursor.text and cursor.entry:
            line = first.setdefault(cursor.text, cursor.entry.node.mark.line)
            if line != cursor.entry.node.mark.line:
                cursor.report(f"duplicate {what} {cursor.text!r}, first in line {line}")


def find_plugin(owner: Cursor, key: str, what: str, known: Mapping[str, P]) -> P | None:
    """The plug-in named by ``key`` of ``owner``; its ``with`` is checked. None and a report if it is unknown."""
    name = owner.get(key)
    if not name.text:
        return None
    plugin = known.get(name.text)
    if plugin is None:
        name.report(f"unknown {what} {name.text!r}", did_you_mean(name.text, known))
        return None
    given = owner.get("with")
    place = given or name
    if place.node and (given.keys() or not given):
        check_model(plugin.params, place.node, given.value or {}, owner.errors)
    return plugin

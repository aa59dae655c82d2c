"""What experiments name: plug-ins with their parameters, and names of their own, each only once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from pydantic import BaseModel

from chaos.load.error_collector import Cursor, did_you_mean
from chaos.load.pydantic_errors import check_model


class Plugin(Protocol):
    """What an action and an assertion have in common."""

    params: type[BaseModel]


P = TypeVar("P", bound=Plugin)


def report_duplicates(cursors: Iterable[Cursor], what: str) -> None:
    """Report every name that an earlier cursor already has."""
    first: dict[str, int] = {}
    for cursor in cursors:
        if cursor.text and cursor.entry:
            line = first.setdefault(cursor.text, cursor.entry.node.mark.line)
            if line != cursor.entry.node.mark.line:
                cursor.report(f"a second {what} {cursor.text!r}, the first is in line {line}")


def find_plugin(owner: Cursor, key: str, what: str, known: Mapping[str, P]) -> P | None:
    """The plug-in that ``owner`` names under ``key``, its ``with`` checked; an unknown one is reported."""
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

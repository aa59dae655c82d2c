"""Who owns which fields, and what an apply does: merge/update.go of sigs.k8s.io/structured-merge-diff.

Objects come without managedFields, and nothing that is given is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.lab.objects import Object
from chaos.lab.servers.field_sets import Fields, Path, differences, fields_of, merge, with_structs, without
from chaos.lab.servers.typed import Typed

Owned = Callable[[Path], bool]  # whether a field of an object can have an owner at all


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """``operation`` is Apply or Update."""

    name: str
    operation: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a manager owns, since when; no ``time`` yet if this write is the first or changed it."""

    fields: Fields
    time: str = ""


Managers = dict[Manager, Entry]


class ApplyConflict(Exception):
    """Somebody else owns fields that an apply would change."""

    def __init__(self, conflicts: list[tuple[Manager, Path]]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Ownership:
    """The rules for objects of one type."""

    typed: Typed
    owned: Owned

    def updated(self, live: Object, new: Object, managers: Managers, manager: Manager) -> Managers:
        """After an ordinary write: the writer owns what it changed, nobody what is gone. Raises SchemaError."""
        changed, gone = self._compared(live, new)
        after = _less(managers, changed | gone)
        if changed:
            after[manager] = Entry(changed | (after[manager].fields if manager in after else frozenset()))
        return after

    def applied(
        self, live: Object, patch: Object, managers: Managers, manager: Manager, force: bool = False
    ) -> tuple[Object, Managers]:
        """The new object and its managers. Raises ApplyConflict, and SchemaError for lists without keys."""
        said = frozenset(fields_of(patch, self.typed))
        mine = frozenset(filter(self.owned, said))
        last = managers.get(manager, Entry(frozenset()))
        others = {known: entry for known, entry in managers.items() if known != manager}
        needed = said.union(*(entry.fields for entry in others.values()))
        new = self._pruned(merge(live, patch, self.typed), last.fields, needed)
        changed, gone = self._compared(live, new)
        conflicts = [(known, path) for known, entry in others.items() for path in entry.fields & changed]
        if conflicts and not force:
            raise ApplyConflict(sorted(conflicts))
        time = "" if changed or gone or mine != last.fields else last.time
        kept = {manager: Entry(mine, time)} if mine else {}
        return new, {**_less(others, changed | gone), **kept}

    def matching(self, applied: Object, live: Object) -> Fields:
        """The fields of ``applied`` that ``live`` still has as they are. Raises SchemaError."""
        changed, gone = self._compared(applied, live)
        return frozenset(fields_of(applied, self.typed)) - changed - gone

    def _compared(self, old: Object, new: Object) -> tuple[Fields, Fields]:
        """Changed or added, and gone."""
        found = [item for item in differences(old, new, self.typed) if self.owned(item[0])]
        return frozenset(path for path, lost in found if not lost), frozenset(path for path, lost in found if lost)

    def _pruned(self, merged: Object, last: Fields, needed: Fields) -> Object:
        """Without what the manager applied last and nobody needs now, but with the rest of what holds such fields."""
        if not last:
            return merged
        typed = self.typed
        pruned: Any = without(merged, typed, with_structs(last, typed))
        all_ = self._all(merged)
        pruned = without(merged, typed, all_ - (self._all(pruned) | with_structs(needed, typed)))
        result: Object = without(merged, typed, (all_ - self._all(pruned)) & with_structs(last, typed))
        return result

    def _all(self, value: Object) -> Fields:
        return with_structs(frozenset(fields_of(value, self.typed)), self.typed)


def _less(managers: Managers, taken: Fields) -> Managers:
    left = {manager: Entry(entry.fields - taken, entry.time) for manager, entry in managers.items()}
    return {manager: entry for manager, entry in left.items() if entry.fields}

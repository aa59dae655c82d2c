"""Who owns which fields, and what an apply does: merge/update.go of sigs.k8s.io/structured-merge-diff.

Objects come without managedFields, and nothing that is given is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.lab.apiserver.http.field_sets import Fields, Path, add_structs, differences, fields_of, merge, remove_fields
from chaos.lab.apiserver.http.typed import FieldType
from chaos.lab.objects.accessors import Object

FieldFilter = Callable[[Path], bool]  # whether a field of an object can have an owner at all


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """``operation`` is Apply or Update."""

    name: str
    operation: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """What a manager owns, since when; no ``time`` yet if this write is the first or changed it."""

    fields: Fields
    time: str = ""


Managers = dict[Manager, ManagedFieldsEntry]


class ApplyConflict(Exception):
    """Somebody else owns fields that an apply would change."""

    def __init__(self, conflicts: list[tuple[Manager, Path]]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Updater:
    """The rules for objects of one type."""

    field_type: FieldType
    field_filter: FieldFilter

    def update(self, live: Object, new: Object, managers: Managers, manager: Manager) -> Managers:
        """After an ordinary write: the writer owns what it changed, nobody what is gone. Raises SchemaError."""
        changed, gone = self._compare(live, new)
        after = _remove_from_managers(managers, changed | gone)
        if changed:
            after[manager] = ManagedFieldsEntry(changed | (after[manager].fields if manager in after else frozenset()))
        return after

    def apply(
        self, live: Object, patch: Object, managers: Managers, manager: Manager, force: bool = False
    ) -> tuple[Object, Managers]:
        """The new object and its managers. Raises ApplyConflict, and SchemaError for lists without keys."""
        said = frozenset(fields_of(patch, self.field_type))
        mine = frozenset(filter(self.field_filter, said))
        last = managers.get(manager, ManagedFieldsEntry(frozenset()))
        others = {known: entry for known, entry in managers.items() if known != manager}
        needed = said.union(*(entry.fields for entry in others.values()))
        new = self._prune(merge(live, patch, self.field_type), last.fields, needed)
        changed, gone = self._compare(live, new)
        conflicts = [(known, path) for known, entry in others.items() for path in entry.fields & changed]
        if conflicts and not force:
            raise ApplyConflict(sorted(conflicts))
        time = "" if changed or gone or mine != last.fields else last.time
        kept = {manager: ManagedFieldsEntry(mine, time)} if mine else {}
        return new, {**_remove_from_managers(others, changed | gone), **kept}

    def matching_fields(self, applied: Object, live: Object) -> Fields:
        """The fields of ``applied`` that ``live`` still has as they are. Raises SchemaError."""
        changed, gone = self._compare(applied, live)
        return frozenset(fields_of(applied, self.field_type)) - changed - gone

    def _compare(self, old: Object, new: Object) -> tuple[Fields, Fields]:
        """Changed or added, and gone."""
        found = [item for item in differences(old, new, self.field_type) if self.field_filter(item[0])]
        return frozenset(path for path, lost in found if not lost), frozenset(path for path, lost in found if lost)

    def _prune(self, merged: Object, last: Fields, needed: Fields) -> Object:
        """Without what the manager applied last and nobody needs now, but with the rest of what holds such fields."""
        if not last:
            return merged
        typed = self.field_type
        pruned: Any = remove_fields(merged, typed, add_structs(last, typed))
        all_ = self._field_set(merged)
        pruned = remove_fields(merged, typed, all_ - (self._field_set(pruned) | add_structs(needed, typed)))
        result: Object = remove_fields(merged, typed, (all_ - self._field_set(pruned)) & add_structs(last, typed))
        return result

    def _field_set(self, value: Object) -> Fields:
        return add_structs(frozenset(fields_of(value, self.field_type)), self.field_type)


def _remove_from_managers(managers: Managers, taken: Fields) -> Managers:
    left = {manager: ManagedFieldsEntry(entry.fields - taken, entry.time) for manager, entry in managers.items()}
    return {manager: entry for manager, entry in left.items() if entry.fields}

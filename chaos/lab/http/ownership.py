"""Ownership of fields, and server-side apply: merge/update.go of sigs.k8s.io/structured-merge-diff.

Objects are without managedFields; arguments are not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chaos.lab.http.field_sets import Fields, FieldType, Path, add_structs, differences, fields_of, merge, remove_fields
from chaos.lab.objects import Object

FieldFilter = Callable[[Path], bool]  # whether a field can have an owner


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """A field manager; ``operation`` is Apply or Update."""

    name: str
    operation: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """Fields of a manager; ``time`` is empty if the current write changed them."""

    fields: Fields
    time: str = ""


Managers = dict[Manager, ManagedFieldsEntry]


class ApplyConflict(Exception):
    """Another manager owns fields that an apply would change."""

    def __init__(self, conflicts: list[tuple[Manager, Path]]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Updater:
    """Updates of managers for objects of one type."""

    field_type: FieldType
    field_filter: FieldFilter

    def update(self, live: Object, new: Object, managers: Managers, manager: Manager) -> Managers:
        """Managers after a write: the writer owns changed fields, removed fields have no owner. Raises SchemaError."""
        changed, removed = self._compare(live, new)
        after = _remove_from_managers(managers, changed | removed)
        if changed:
            after[manager] = ManagedFieldsEntry(changed | (after[manager].fields if manager in after else frozenset()))
        return after

    def apply(
        self, live: Object, patch: Object, managers: Managers, manager: Manager, force: bool = False
    ) -> tuple[Object, Managers]:
        """New object and its managers after an apply. Raises ApplyConflict, and SchemaError for lists without keys."""
        fields = frozenset(fields_of(patch, self.field_type))
        owned = frozenset(filter(self.field_filter, fields))
        last = managers.get(manager, ManagedFieldsEntry(frozenset()))
        others = {known: entry for known, entry in managers.items() if known != manager}
        needed = fields.union(*(entry.fields for entry in others.values()))
        new = self._prune(merge(live, patch, self.field_type), last.fields, needed)
        changed, removed = self._compare(live, new)
        conflicts = [(known, path) for known, entry in others.items() for path in entry.fields & changed]
        if conflicts and not force:
            raise ApplyConflict(sorted(conflicts))
        time = "" if changed or removed or owned != last.fields else last.time
        entry = {manager: ManagedFieldsEntry(owned, time)} if owned else {}
        return new, {**_remove_from_managers(others, changed | removed), **entry}

    def matching_fields(self, applied: Object, live: Object) -> Fields:
        """Fields of ``applied`` that are unchanged in ``live``. Raises SchemaError."""
        changed, removed = self._compare(applied, live)
        return frozenset(fields_of(applied, self.field_type)) - changed - removed

    def _compare(self, old: Object, new: Object) -> tuple[Fields, Fields]:
        """Paths changed or added, and paths removed."""
        result = [item for item in differences(old, new, self.field_type) if self.field_filter(item[0])]
        removed = frozenset(path for path, is_removed in result if is_removed)
        return frozenset(path for path, is_removed in result if not is_removed), removed

    def _prune(self, merged: Object, last: Fields, needed: Fields) -> Object:
        """Remove fields that the manager applied last and that no manager needs now, unless they hold needed fields."""
        if not last:
            return merged
        field_type = self.field_type
        pruned: Any = remove_fields(merged, field_type, add_structs(last, field_type))
        all_ = self._field_set(merged)
        pruned = remove_fields(merged, field_type, all_ - (self._field_set(pruned) | add_structs(needed, field_type)))
        unneeded = (all_ - self._field_set(pruned)) & add_structs(last, field_type)
        result: Object = remove_fields(merged, field_type, unneeded)
        return result

    def _field_set(self, value: Object) -> Fields:
        return add_structs(frozenset(fields_of(value, self.field_type)), self.field_type)


def _remove_from_managers(managers: Managers, fields: Fields) -> Managers:
    rest = {manager: ManagedFieldsEntry(entry.fields - fields, entry.time) for manager, entry in managers.items()}
    return {manager: entry for manager, entry in rest.items() if entry.fields}

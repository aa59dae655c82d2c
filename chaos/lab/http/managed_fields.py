"""metadata.managedFields: encoding, and updates by writes and applies.

Rules: k8s.io/apimachinery/pkg/util/managedfields/internal. As there, an ordinary write adds no managedFields to an
object that has none. So objects of the lab's components cost nothing, and belong to before-first-apply at the first
apply. Writes of these components never change owners. Nodes are the exception: their kubelets are known to have created
them, and owners are recorded from the first write of a client on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from chaos.lab.http.field_sets import Fields, Path, field_type_of
from chaos.lab.http.ownership import ApplyConflict, ManagedFieldsEntry, Manager, Managers, Updater
from chaos.lab.http.resources import Resource
from chaos.lab.objects import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_UPDATERS = 10
_SERVER_FIELDS = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
)
_STRIP_SET = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{key}") for key in (*_SERVER_FIELDS, "uid"))}
)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writer of a request: manager, resource, subresource and time."""

    name: str
    resource: Resource
    subresource: str
    now: str

    def manager(self, operation: str) -> Manager:
        return Manager(self.name, operation, self.subresource)

    @property
    def updater(self) -> Updater:
        return _updater(self.resource, self.subresource)


def record_update(writer: Writer, live: Object | None, new: Object) -> None:
    """Update managedFields of ``new``, which an ordinary write is about to store instead of ``live``."""
    sent = new["metadata"].pop("managedFields", None)
    stored = (live or {}).get("metadata", {}).get("managedFields") or []
    if live is None or writer.subresource:
        sent = None
    entries = [] if sent in ([], [{}]) else sent or stored
    if live is not None and not entries and not writer.subresource and writer.resource.plural == "nodes":
        entries = _registered_by_kubelet(writer, live)
    if live is not None and not entries:
        return
    try:
        managers = writer.updater.update(
            _without_managed_fields(live or {}), _without_managed_fields(new), decode(entries), writer.manager("Update")
        )
    except (AttributeError, KeyError, TypeError, ValueError):  # UpdateNoErrors: the owners do not change
        managers = decode(stored)
    if managers:
        new["metadata"]["managedFields"] = encode(_cap_updaters(managers), writer)


def _registered_by_kubelet(writer: Writer, node: Object) -> list[Object]:
    """The entries of a Node that its kubelet created, and no other client has changed."""
    created = node["metadata"].get("creationTimestamp", "")
    managers = writer.updater.update({}, _without_managed_fields(node), {}, Manager("kubelet", "Update"))
    return encode({manager: replace(entry, time=created) for manager, entry in managers.items()}, writer)


def apply_configuration(writer: Writer, live: Object, patch: Object, force: bool) -> tuple[Object, list[Object]]:
    """Object after a server-side apply, and its managedFields. Raises ApplyConflict, SchemaError."""
    updater, manager, before = writer.updater, writer.manager("Apply"), _without_managed_fields(live)
    managers = decode(live.get("metadata", {}).get("managedFields") or [])
    if live and not managers:
        managers = updater.update({}, before, {}, Manager("before-first-apply", "Update", writer.subresource))
    try:
        new, after = updater.apply(before, patch, managers, manager, force)
    except ApplyConflict as error:
        transferable = _client_side_applied_fields(writer, before)
        conflicts = [(owner, path) for owner, path in error.conflicts if path not in transferable]
        if conflicts:
            raise ApplyConflict(conflicts) from error
        new, after = updater.apply(before, patch, managers, manager, force=True)
    annotations = new["metadata"].get("annotations") or {}
    if writer.name == "kubectl" and annotations.get(LAST_APPLIED):
        metadata = {**new["metadata"], "annotations": {**annotations, LAST_APPLIED: _last_applied(writer, patch)}}
        new = {**new, "metadata": metadata}
    return new, encode(after, writer)


def _client_side_applied_fields(writer: Writer, live: Object) -> Fields:
    """Fields that kubectl may take over from client-side apply: lastappliedmanager.go."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED) if writer.name == "kubectl" else None
    try:
        last = json.loads(text) if text else None
        return (
            writer.updater.matching_fields(_without_managed_fields(last), live)
            if isinstance(last, dict)
            else frozenset()
        )
    except ValueError:
        return frozenset()


def _last_applied(writer: Writer, patch: Object) -> str:
    metadata = patch["metadata"]
    if "annotations" in metadata:
        annotations = {key: value for key, value in metadata["annotations"].items() if key != LAST_APPLIED}
        metadata = {**metadata, "annotations": annotations}
    return (
        json.dumps({**writer.resource.show(patch), "metadata": metadata}, separators=(",", ":"), sort_keys=True) + "\n"
    )


def decode(entries: Any) -> Managers:
    """Decode managedFields. Raises AttributeError, KeyError, TypeError or ValueError for invalid ones."""
    return {
        Manager(entry["manager"], _operation(entry["operation"]), entry.get("subresource", "")): ManagedFieldsEntry(
            frozenset(_paths(entry.get("fieldsV1") or {}, ())), entry.get("time", "")
        )
        for entry in entries
    }


def _operation(text: str) -> str:
    if text not in ("Apply", "Update"):
        raise ValueError("operation must be `Apply` or `Update`")
    return text


def encode(managers: Managers, writer: Writer) -> list[Object]:
    """Encode in the order of sortEncodedManagedFields; an entry without time gets the writer's."""

    def order(item: tuple[Manager, ManagedFieldsEntry]) -> tuple[str, ...]:
        return item[0].operation, item[1].time or writer.now, item[0].name, item[0].subresource

    return [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": writer.resource.group_version,
            "time": entry.time or writer.now,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(entry.fields),
            **({"subresource": manager.subresource} if manager.subresource else {}),
        }
        for manager, entry in sorted(managers.items(), key=order)
    ]


def _paths(tree: Any, path: Path) -> list[Path]:
    result: list[Path] = []
    for name, below in tree.items():
        if name == ".":
            result.append(path)
            continue
        _check_name(name)
        result += _paths(below, (*path, name)) if below else [(*path, name)]
    return result


def _check_name(name: str) -> None:
    """Raise ValueError for an invalid path element: DeserializePathElement."""
    kind, _, text = name.partition(":")
    value = json.loads(text) if kind in ("k", "v") else None
    if kind not in ("f", "k", "v") or (kind == "k" and not isinstance(value, dict)):
        raise ValueError(f"unknown path element {name!r}")


def _tree(fields: Fields) -> Object:
    root: Object = {}
    for path in sorted(fields):
        at = root
        for name in path:
            at = at.setdefault(name, {})
        at["."] = {}
    return _without_dots(root)


def _without_dots(tree: Object) -> Object:
    """Remove the member marks of leaves, which are implicit."""
    return {} if tree.keys() == {"."} else {name: _without_dots(below) for name, below in tree.items()}


def _cap_updaters(managers: Managers) -> Managers:
    """Limit updaters to ten: merge the oldest into ancient-changes. capmanagers.go."""
    updaters = sorted((entry.time or "~", m) for m, entry in managers.items() if m.operation == "Update")
    if len(updaters) <= _MAX_UPDATERS:
        return managers
    oldest = [manager for _, manager in updaters[: len(updaters) - _MAX_UPDATERS + 1]]
    others = {manager: entry for manager, entry in managers.items() if manager not in oldest}
    fields = frozenset().union(*(managers[manager].fields for manager in oldest))
    return {**others, Manager("ancient-changes", "Update"): ManagedFieldsEntry(fields, managers[oldest[-1]].time)}


def _without_managed_fields(obj: Object) -> Object:
    """Copy without managedFields, kind and apiVersion."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
    return {**rest, **({"metadata": metadata} if metadata else {})}


@cache
def _updater(resource: Resource, subresource: str) -> Updater:
    """Updater that ignores fields which the subresource does not write: resetFields of the strategies."""
    return Updater(field_type_of(resource), _field_filter(resource, subresource))


def _field_filter(resource: Resource, subresource: str) -> Callable[[Path], bool]:
    if subresource == "status":
        return lambda path: path[0] == "f:status"
    return lambda path: path not in _STRIP_SET and not (resource.has_status and path[0] == "f:status")

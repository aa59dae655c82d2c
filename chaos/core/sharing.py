"""Equal parts of objects are held once: most of a version is as in the one before, and most pods of a set are alike."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.core.kube import Metadata, Node, Pod

_MANY = 20_000  # parts; as many that are all different share nothing
_CONDITION = ("type", "status", "reason", "message")
_POD_SPEC = ("tolerations", "containers", "volumes", "node_selector", "affinity", "topology_spread_constraints")
_POD_STATUS = ("conditions", "container_statuses", "init_container_statuses")
_NODE_STATUS = ("addresses", "node_info", "capacity", "allocatable", "volumes_in_use", "volumes_attached")


class Sharing:
    """Replaces parts of objects by equal ones of earlier objects. No one changes them."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bytes], Any] = {}
        self._texts: dict[str, str] = {}

    def share(self, obj: Any, before: Any) -> None:
        """Replace parts of ``obj``. ``before``: its version before, None for the first."""
        if before is None:
            if isinstance(obj, Pod):
                self._share_first(obj)
            return
        _share_metadata(obj.metadata, before.metadata)
        if isinstance(obj, Pod | Node):
            if obj.spec == before.spec:
                obj.spec = before.spec
            if obj.status == before.status:
                obj.status = before.status
            elif obj.status is not None and before.status is not None:
                _share_fields(obj.status, before.status, _POD_STATUS if isinstance(obj, Pod) else _NODE_STATUS)

    def _share_first(self, pod: Pod) -> None:
        """Parts that the pods of a set have in common."""
        pod.metadata.namespace = self._text(pod.metadata.namespace)
        self._share_parts(pod.metadata, ("labels", "owner_references"))
        if pod.spec is not None:
            self._share_texts(pod.spec, ("node_name",))
            self._share_parts(pod.spec, _POD_SPEC)
        for condition in (pod.status.conditions if pod.status else None) or ():
            self._share_texts(condition, _CONDITION)

    def _share_texts(self, obj: Any, names: tuple[str, ...]) -> None:
        for name in names:
            if text := getattr(obj, name):
                setattr(obj, name, self._text(text))

    def _share_parts(self, obj: Any, names: tuple[str, ...]) -> None:
        for name in names:
            part = getattr(obj, name)
            if part is not None:
                setattr(obj, name, self._part(name, part))

    def _text(self, text: str) -> str:
        if len(self._texts) > _MANY:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def _part(self, name: str, part: Any) -> Any:
        if len(self._parts) > _MANY:
            self._parts.clear()
        return self._parts.setdefault((name, msgspec.msgpack.encode(part)), part)


def _share_metadata(now: Metadata, before: Metadata) -> None:
    """As ``_share_fields``, in half the time: this is for each entry."""
    if now.name == before.name:
        now.name = before.name
    if now.namespace == before.namespace:
        now.namespace = before.namespace
    if now.uid == before.uid:
        now.uid = before.uid
    if now.creation_timestamp == before.creation_timestamp:
        now.creation_timestamp = before.creation_timestamp
    if now.labels == before.labels:
        now.labels = before.labels
    if now.owner_references == before.owner_references:
        now.owner_references = before.owner_references


def _share_fields(now: Any, before: Any, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(before, name)
        if value is not None and getattr(now, name) == value:
            setattr(now, name, value)

"""Snapshots as ``nodefall snapshot`` writes them: JSON lines in gzip, of which the first is the header."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from chaos.lab.objects import Object

FORMAT = 1
_PARTS = ("metadata", "spec", "status")
PLURALS = (
    "namespaces", "nodes", "priorityclasses", "storageclasses", "csidrivers", "persistentvolumes",
    "persistentvolumeclaims", "volumeattachments", "services", "poddisruptionbudgets", "deployments", "replicasets",
    "statefulsets", "daemonsets", "controllerrevisions", "jobs", "cronjobs", "pods",
    "horizontalpodautoscalers", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",  # not restored
)  # fmt: skip


class SnapshotError(ValueError):
    """The file is not a snapshot from which a lab can be made."""


class _Line(msgspec.Struct):
    kind: str
    object: dict[str, Any]
    node: str = ""


class _Missing(msgspec.Struct):
    what: str
    why: str


class _Header(msgspec.Struct, rename="camel"):
    """The parts of the header that are checked. ``taken``: epoch seconds, before the year 9000."""

    taken: Annotated[float, msgspec.Meta(ge=0, le=2e11)]
    kubernetes: str = ""
    missing: list[_Missing] = []
    controller_manager: dict[str, Any] = {}
    api_server: dict[str, Any] = {}


@dataclass
class Snapshot:
    """``taken``: epoch seconds. ``lists``: objects by plural. ``configs``: of kubelets, by node.

    ``hosts``: facts by node. ``measured``: times of pods by owner, kind and ``namespace/name``.
    """

    header: dict[str, Any]
    taken: float
    lists: dict[str, list[Object]] = field(
        default_factory=lambda: {plural: [] for plural in (*PLURALS, "events", "leases")}
    )
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    measured: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def objects(self, plural: str) -> list[Object]:
        """Objects of a kind. They must not be changed in place."""
        return list(self.lists[plural])

    def replace(self, plural: str, objects: list[Object]) -> None:
        """Put ``objects`` in place of those of a kind."""
        self.lists[plural] = list(objects)


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot. Raises SnapshotError."""
    decode = msgspec.json.Decoder(_Line).decode
    snapshot: Snapshot | None = None
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                entry = decode(line)
                if snapshot is None:
                    snapshot = _begin(entry, path)
                else:
                    _add(snapshot, entry)
    except OSError as error:  # also of gzip, without strerror
        raise SnapshotError(f"{path}: {error.strerror or f'not a snapshot: {error}'}") from error
    except (EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise SnapshotError(f"{path}: not a snapshot: {error}") from error
    if snapshot is None or not snapshot.objects("nodes"):
        raise SnapshotError(f"{path}: the snapshot has no nodes")
    return snapshot


def _begin(entry: _Line, path: Path) -> Snapshot:
    header = entry.object
    if entry.kind != "header":
        raise SnapshotError(f"{path}: not a snapshot: the first line is no header")
    if header.get("format") != FORMAT:
        raise SnapshotError(f"{path}: format {header.get('format')} of a snapshot is not known, only {FORMAT}")
    return Snapshot(header, msgspec.convert(header, _Header).taken)


def _add(snapshot: Snapshot, entry: _Line) -> None:
    """Add a line; those of kinds that this version does not know are ignored."""
    if entry.kind in PLURALS:
        _check_object(entry)
        snapshot.lists[entry.kind].append(entry.object)
    elif entry.kind == "configz":
        snapshot.configs[entry.node] = entry.object
    elif entry.kind == "host":
        snapshot.hosts[entry.node] = entry.object
    elif entry.kind == "measured" and entry.object.get("kind") != "Image":
        owner = entry.object["kind"], f"{entry.object.get('namespace', '')}/{entry.object['name']}"
        snapshot.measured[owner] = entry.object


def _check_object(entry: _Line) -> None:
    """Raises TypeError for an object that has no name or not the form of one."""
    obj = entry.object
    name = obj.get("metadata", {}).get("name") if isinstance(obj.get("metadata"), dict) else None
    if not isinstance(name, str) or not name:
        raise TypeError(f"one of the {entry.kind} has no metadata.name")
    for part in _PARTS:
        if not isinstance(obj.get(part, {}), dict):
            raise TypeError(f"{part} of {entry.kind} {name} is not an object")
    if entry.kind == "pods" and not obj.get("spec", {}).get("containers"):
        raise TypeError(f"pod {name} has no containers")

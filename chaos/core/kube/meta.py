"""Metadata of objects, types shared by several kinds, and Events."""

from __future__ import annotations

from msgspec import Struct, field


class Base(Struct, rename="camel", omit_defaults=True, gc=False):
    """Base of all Kubernetes structs."""


class OwnerReference(Base):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Annotations(Base):
    """Only the two annotations that identify the mirror of a static pod."""

    mirror: str | None = field(default=None, name="kubernetes.io/config.mirror")
    source: str | None = field(default=None, name="kubernetes.io/config.source")


class Metadata(Base):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class Condition(Base):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


class ObjectReference(Base):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Requirement(Base):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Base):
    """A label selector: null selects nothing, an empty one everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


def condition(conditions: list[Condition] | None, type_: str) -> Condition | None:
    """The condition of this type, or None."""
    return next((c for c in conditions or () if c.type == type_), None)


def full_name(metadata: Metadata) -> str:
    """``namespace/name``, or the name of a cluster-scoped object."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class EventSource(Base):
    component: str | None = None
    host: str | None = None


class Event(Base):
    metadata: Metadata = field(default_factory=Metadata)
    involved_object: ObjectReference | None = None
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    source: EventSource | None = None
    reporting_component: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int | None = None


_VERSION_DIGITS = 20  # of a revision of etcd, which has 64 bits


def version_number(version: str) -> int | None:
    """A resourceVersion as a comparable number; None for any other text."""
    is_number = version.isascii() and version.isdecimal() and len(version) <= _VERSION_DIGITS
    return int(version) if is_number else None

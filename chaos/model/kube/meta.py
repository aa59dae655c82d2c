"""Metadata of objects, and what several kinds share."""

from __future__ import annotations

from msgspec import Struct, field


class Base(Struct, rename="camel", omit_defaults=True, gc=False):
    """Common settings of all structs below."""


class OwnerReference(Base):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Annotations(Base):
    """Only the two that tell a static pod's mirror from an ordinary pod."""

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
    """Null selects nothing, an empty one everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


def condition(conditions: list[Condition] | None, type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((c for c in conditions or () if c.type == type_), None)


def full_name(metadata: Metadata) -> str:
    """``namespace/name``, or the name alone for cluster-wide objects."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

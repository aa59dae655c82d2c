"""Events."""

from __future__ import annotations

from msgspec import field

from chaos.core.kube.meta import Base, Metadata, ObjectReference


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

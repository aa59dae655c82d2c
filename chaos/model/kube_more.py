"""Budgets, endpoints, volumes and jobs: the parts that are looked at, as :mod:`chaos.model.kube`."""

from __future__ import annotations

from msgspec import field

from chaos.model.kube import Base, Condition, Metadata, ObjectReference


class Requirement(Base):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Base):
    """Null selects nothing, an empty one everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class BudgetSpec(Base):
    """minAvailable and maxUnavailable are numbers or like ``25%``."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Base):
    """``disrupted_pods``: evictions that were granted and not yet seen, time by pod name."""

    observed_generation: int | None = None
    disruptions_allowed: int | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None
    expected_pods: int | None = None
    disrupted_pods: dict[str, str] | None = None
    conditions: list[Condition] | None = None


class PodDisruptionBudget(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class EndpointConditions(Base):
    """Null means unknown, which the API tells consumers to take as ready and serving, and not terminating."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class SliceEndpoint(Base):
    addresses: list[str] | None = None
    conditions: EndpointConditions | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None


class EndpointPort(Base):
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(Base):
    """Its Service is named by the label ``kubernetes.io/service-name``."""

    metadata: Metadata = field(default_factory=Metadata)
    address_type: str = ""
    endpoints: list[SliceEndpoint] | None = None
    ports: list[EndpointPort] | None = None


class AttachmentSource(Base):
    persistent_volume_name: str | None = None


class AttachmentSpec(Base):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource | None = None


class VolumeError(Base):
    time: str | None = None
    message: str | None = None


class AttachmentStatus(Base):
    attached: bool | None = None
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: AttachmentSpec | None = None
    status: AttachmentStatus | None = None


class ClaimSpec(Base):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class ClaimStatus(Base):
    phase: str | None = None


class PersistentVolumeClaim(Base):
    """Leads from a pod's volume (``claimName``) to the volume that is attached (``volumeName``)."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class JobSpec(Base):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None


class JobStatus(Base):
    active: int | None = None
    ready: int | None = None
    terminating: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] | None = None


class Job(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: JobSpec | None = None
    status: JobStatus | None = None

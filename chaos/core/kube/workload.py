"""Workloads, Jobs, PodDisruptionBudgets and EndpointSlices."""

from __future__ import annotations

from msgspec import field

from chaos.core.kube.meta import Base, Condition, LabelSelector, Metadata, ObjectReference
from chaos.core.kube.pod import PodTemplate


class RollingUpdate(Base):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    partition: int | None = None


class UpdateStrategy(Base):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class ClaimRetention(Base):
    when_deleted: str = ""
    when_scaled: str = ""


class WorkloadSpec(Base):
    """Union of the specs of Deployments, StatefulSets, ReplicaSets and DaemonSets.

    ``strategy`` belongs to Deployments, ``update_strategy`` to the other kinds.
    """

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    strategy: UpdateStrategy | None = None
    update_strategy: UpdateStrategy | None = None
    pod_management_policy: str | None = None
    min_ready_seconds: int | None = None
    claim_retention: ClaimRetention | None = field(default=None, name="persistentVolumeClaimRetentionPolicy")


class WorkloadStatus(Base):
    """Union of the statuses of Deployments, StatefulSets, ReplicaSets and DaemonSets."""

    observed_generation: int | None = None
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    updated_replicas: int | None = None
    unavailable_replicas: int | None = None
    terminating_replicas: int | None = None
    desired_number_scheduled: int | None = None
    number_ready: int | None = None
    number_available: int | None = None


class Workload(Base):
    """A Deployment, StatefulSet, ReplicaSet or DaemonSet; the kind is part of its key in the timeline."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


class PodConditionPattern(Base):
    type: str = ""
    status: str = ""


class ExitCodes(Base):
    container_name: str | None = None
    operator: str = ""
    values: list[int] | None = None


class PodFailureRule(Base):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: list[PodConditionPattern] | None = None


class PodFailurePolicy(Base):
    rules: list[PodFailureRule] | None = None


class JobSpec(Base):
    template: PodTemplate | None = None
    completion_mode: str | None = None
    active_deadline_seconds: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
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


class BudgetSpec(Base):
    """Spec of a budget; minAvailable and maxUnavailable are numbers or percentages like ``25%``."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Base):
    """Status of a budget. ``disrupted_pods``: evictions that were granted and not yet observed, time by pod name."""

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
    """Conditions of an endpoint. Null means unknown: to treat as ready and serving, and not terminating."""

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
    """An EndpointSlice; the label ``kubernetes.io/service-name`` names its Service."""

    metadata: Metadata = field(default_factory=Metadata)
    address_type: str = ""
    endpoints: list[SliceEndpoint] | None = None
    ports: list[EndpointPort] | None = None

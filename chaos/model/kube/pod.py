"""Pods and the states of their containers."""

from __future__ import annotations

from msgspec import field

from chaos.model.kube.meta import Base, Condition, Metadata, OwnerReference, condition


class Toleration(Base):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class Container(Base):
    name: str = ""


class ContainerStateTerminated(Base):
    exit_code: int | None = None
    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerStateRunning(Base):
    started_at: str | None = None


class ContainerStateWaiting(Base):
    reason: str | None = None


class ContainerState(Base):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(Base):
    name: str = ""
    ready: bool | None = None
    restart_count: int | None = None
    container_id: str | None = field(default=None, name="containerID")
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class ClaimSource(Base):
    claim_name: str = ""


class Volume(Base):
    """A volume; only those of PersistentVolumeClaims have more than a name."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None


class PodSpec(Base):
    node_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    termination_grace_period_seconds: int | None = None
    restart_policy: str | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    volumes: list[Volume] | None = None


class PodStatus(Base):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    qos_class: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: PodSpec | None = None
    status: PodStatus | None = None


def pod_condition(pod: Pod, type_: str) -> Condition | None:
    """A pod's condition of that type, if any."""
    return condition(pod.status.conditions if pod.status else None, type_)


def phase(pod: Pod) -> str:
    """The pod's phase, "" if it has none yet."""
    return (pod.status.phase if pod.status else None) or ""


def is_finished(pod: Pod) -> bool:
    """Whether the phase is terminal."""
    return phase(pod) in ("Succeeded", "Failed")


def controller_of(pod: Pod) -> OwnerReference | None:
    """Owner reference of the pod's controller, if any."""
    return next((o for o in pod.metadata.owner_references or () if o.controller), None)


def is_static(pod: Pod) -> bool:
    """Whether the pod is the mirror of a static pod, which only files on the node control."""
    annotations = pod.metadata.annotations
    return bool(annotations and annotations.mirror)

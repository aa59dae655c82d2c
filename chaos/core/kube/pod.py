"""Pods, their templates, and the states of their containers."""

from __future__ import annotations

from typing import Any

from msgspec import field

from chaos.core.kube.meta import Base, Condition, LabelSelector, Metadata, OwnerReference, Requirement, condition
from chaos.core.labels import HELPER_LABEL


class Empty(Base):
    """An object of which nodefall records only the presence."""


class Toleration(Base):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class Sleep(Base):
    seconds: int = 0


class Hook(Base):
    """A preStop hook: how long it sleeps, else only its kind. Commands, paths and headers are never decoded."""

    sleep: Sleep | None = None
    exec: Empty | None = None
    http_get: Empty | None = None
    tcp_socket: Empty | None = None


class Lifecycle(Base):
    pre_stop: Hook | None = None


class Probe(Base):
    """When a probe is made, not what it does."""

    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    failure_threshold: int | None = None


class Resources(Base):
    requests: dict[str, Any] | None = None  # quantities by resource, as texts or numbers
    limits: dict[str, Any] | None = None


class Container(Base):
    """The fields of a container that decide where it fits and when it starts, becomes ready and ends."""

    name: str = ""
    lifecycle: Lifecycle | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    resources: Resources | None = None


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
    """A volume. Only volumes of PersistentVolumeClaims have more fields than a name."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None


class NodeSelectorTerm(Base):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Base):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(Base):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Base):
    """The required node affinity. Of pod affinity, only whether any is set."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: Empty | None = None
    pod_anti_affinity: Empty | None = None


class TopologySpread(Base):
    max_skew: int | None = None
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class PodSpec(Base):
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: list[TopologySpread] | None = None
    scheduler_name: str | None = None
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    termination_grace_period_seconds: int | None = None
    restart_policy: str | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    volumes: list[Volume] | None = None


class TemplateMetadata(Base):
    """Labels of a template; its annotations are not recorded."""

    labels: dict[str, str] | None = None


class PodTemplate(Base):
    metadata: TemplateMetadata | None = None
    spec: PodSpec | None = None


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
    """The condition of a pod with this type, or None."""
    return condition(pod.status.conditions if pod.status else None, type_)


def phase(pod: Pod) -> str:
    """The pod's phase, "" if it has none yet."""
    return (pod.status.phase if pod.status else None) or ""


def is_finished(pod: Pod) -> bool:
    """Whether the phase is terminal."""
    return phase(pod) in ("Succeeded", "Failed")


def controller_of(pod: Pod) -> OwnerReference | None:
    """The owner reference of the pod's controller, or None."""
    return next((o for o in pod.metadata.owner_references or () if o.controller), None)


def is_owned_by(pod: Pod, kind: str, name: str) -> bool:
    """Whether the controller is ``kind name``; a Deployment owns the pods of its ReplicaSets."""
    owner = controller_of(pod)
    if owner is None:
        return False
    if kind == "Deployment":
        template = (pod.metadata.labels or {}).get("pod-template-hash")
        return owner.kind == "ReplicaSet" and bool(template) and owner.name == f"{name}-{template}"
    return owner.kind == kind and owner.name == name


def is_static(pod: Pod) -> bool:
    """Whether the pod is the mirror of a static pod, which only files on the node control."""
    annotations = pod.metadata.annotations
    return bool(annotations and annotations.mirror)


def is_helper(pod: Pod) -> bool:
    """Whether the pod is one of transport pod, through which nodefall itself reaches a host."""
    return (pod.metadata.labels or {}).get(HELPER_LABEL) == "pod"

"""The parts of Kubernetes objects that are looked at, and so the only parts ever recorded.

Every field may be missing or null, as real API servers send both (a bookmark has ``containers: null``).
Times stay RFC 3339 strings: they are evidence, with one second of resolution, not what bounds are judged on.
"""

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


class Taint(Base):
    key: str = ""
    effect: str = ""
    value: str | None = None
    time_added: str | None = None


class Address(Base):
    type: str = ""
    address: str = ""


class Endpoint(Base):
    port: int = field(default=0, name="Port")


class DaemonEndpoints(Base):
    kubelet_endpoint: Endpoint | None = None


class NodeSwap(Base):
    capacity: int | None = None  # bytes


class NodeInfo(Base):
    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kubelet_version: str = ""
    operating_system: str = ""
    os_image: str = ""
    swap: NodeSwap | None = None  # since v1.33


class NodeSpec(Base):
    taints: list[Taint] | None = None
    unschedulable: bool | None = None
    provider_id: str | None = field(default=None, name="providerID")


class AttachedVolume(Base):
    name: str = ""


class NodeStatus(Base):
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None
    daemon_endpoints: DaemonEndpoints | None = None
    node_info: NodeInfo | None = None
    volumes_in_use: list[str] | None = None
    volumes_attached: list[AttachedVolume] | None = None
    capacity: dict[str, str] | None = None  # quantities by resource
    allocatable: dict[str, str] | None = None


class Node(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


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
    """Which claim a volume is of; every other kind of volume has only its name."""

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


class LeaseSpec(Base):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: LeaseSpec | None = None


class ObjectReference(Base):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


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


class WorkloadSpec(Base):
    replicas: int | None = None


class WorkloadStatus(Base):
    """Union of what Deployments, StatefulSets, ReplicaSets and DaemonSets report."""

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
    """A Deployment, StatefulSet, ReplicaSet or DaemonSet; the kind is the timeline's key."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


def condition(conditions: list[Condition] | None, type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((c for c in conditions or () if c.type == type_), None)


def node_condition(node: Node, type_: str) -> Condition | None:
    """A node's condition of that type."""
    return condition(node.status.conditions if node.status else None, type_)


def is_ready(node: Node) -> bool:
    """True if the node's Ready condition is True."""
    ready = node_condition(node, "Ready")
    return ready is not None and ready.status == "True"


def pod_condition(pod: Pod, type_: str) -> Condition | None:
    """A pod's condition of that type."""
    return condition(pod.status.conditions if pod.status else None, type_)


def phase(pod: Pod) -> str:
    """The pod's phase, "" if it has none yet."""
    return (pod.status.phase if pod.status else None) or ""


def is_finished(pod: Pod) -> bool:
    """True once the phase is terminal."""
    return phase(pod) in ("Succeeded", "Failed")


def controller_of(pod: Pod) -> OwnerReference | None:
    """The owner that manages the pod."""
    return next((o for o in pod.metadata.owner_references or () if o.controller), None)


def is_static(pod: Pod) -> bool:
    """True for the mirror of a static pod: only the node's files decide about it."""
    annotations = pod.metadata.annotations
    return bool(annotations and annotations.mirror)


def full_name(metadata: Metadata) -> str:
    """``namespace/name``, or the name alone for cluster-wide objects."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

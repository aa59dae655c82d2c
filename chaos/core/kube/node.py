"""Nodes and their Leases, PersistentVolumeClaims and VolumeAttachments."""

from __future__ import annotations

from typing import Any

from msgspec import field

from chaos.core.kube.meta import Base, Condition, Metadata, condition


class OwnedSpec(Base):
    """The fields of the spec that nodefall owns; None for a field that another manager owns."""

    unschedulable: Any = field(default=None, name="f:unschedulable")
    taints: Any = field(default=None, name="f:taints")


class OwnedFields(Base):
    spec: OwnedSpec | None = field(default=None, name="f:spec")


class ManagedFields(Base):
    """A field manager: by whom and when fields were last set."""

    manager: str = ""
    operation: str = ""
    time: str | None = None
    fields_v1: OwnedFields | None = None

    @property
    def owned(self) -> OwnedSpec:
        return (self.fields_v1 and self.fields_v1.spec) or OwnedSpec()


class NodeMetadata(Metadata):
    """``managed_fields`` has only the managers that own a field of :class:`OwnedSpec`."""

    managed_fields: list[ManagedFields] | None = None

    def __post_init__(self) -> None:
        entries = [m for m in self.managed_fields or () if m.owned != OwnedSpec()]
        self.managed_fields = entries or None


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
    kernel_version: str = ""
    container_runtime_version: str = ""
    swap: NodeSwap | None = None  # since v1.33


class NodeSpec(Base):
    taints: list[Taint] | None = None
    unschedulable: bool | None = None
    provider_id: str | None = field(default=None, name="providerID")
    pod_cidr: str | None = field(default=None, name="podCIDR")


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
    metadata: NodeMetadata = field(default_factory=NodeMetadata)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class LeaseSpec(Base):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: LeaseSpec | None = None


def last_manager(node: Node, field_name: str) -> str:
    """Field manager that last set ``unschedulable`` or ``taints``; "" if unknown, as of a field that was removed."""
    owners = [m for m in node.metadata.managed_fields or () if getattr(m.owned, field_name) is not None]
    last = max(owners, key=lambda m: m.time or "", default=None)
    return last.manager if last else ""


def node_condition(node: Node, type_: str) -> Condition | None:
    """The condition of a node with this type, or None."""
    return condition(node.status.conditions if node.status else None, type_)


def operating_system(node: Node) -> str:
    """``linux`` or ``windows``."""
    info = node.status.node_info if node.status else None
    return (info.operating_system if info else "") or "linux"


def is_ready(node: Node) -> bool:
    """Whether the Ready condition is True."""
    ready = node_condition(node, "Ready")
    return ready is not None and ready.status == "True"


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
    """The claim between a pod's volume (``claimName``) and the attached volume (``volumeName``)."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None

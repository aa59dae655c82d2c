"""Nodes and their Leases."""

from __future__ import annotations

from msgspec import field

from chaos.model.kube.meta import Base, Condition, Metadata, condition


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


class LeaseSpec(Base):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Base):
    metadata: Metadata = field(default_factory=Metadata)
    spec: LeaseSpec | None = None


def node_condition(node: Node, type_: str) -> Condition | None:
    """A node's condition of that type, if any."""
    return condition(node.status.conditions if node.status else None, type_)


def is_ready(node: Node) -> bool:
    """Whether the Ready condition is True."""
    ready = node_condition(node, "Ready")
    return ready is not None and ready.status == "True"

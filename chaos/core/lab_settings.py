"""The simulated cluster of an inventory."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from chaos.core.field_types import DurationText, Flag, Model, SimulatedVersion, full_match

Quantity = Annotated[str, full_match(r"(\d+(k|[KMGT]i|[MGT])?)?", "is not a number of bytes; write it like 2Gi")]


class PriorityGrace(Model):
    """An entry of the kubelet's shutdownGracePeriodByPodPriority."""

    priority: StrictInt = Field(description="The lowest priority of the pods in this group.")
    shutdown_grace_period_seconds: StrictInt = Field(
        alias="shutdownGracePeriodSeconds", ge=0, description="The seconds that these pods get."
    )


class Rule(Model):
    """A rule of an RBAC role; empty ``namespaces`` mean all."""

    verbs: list[str] = Field(min_length=1, description="As in a Role.")
    api_groups: list[str] = Field([""], alias="apiGroups", description="As in a Role.")
    resources: list[str] = Field([], description="As in a Role.")
    resource_names: list[str] = Field([], alias="resourceNames", description="As in a Role. Empty means all.")
    non_resource_urls: list[str] = Field([], alias="nonResourceURLs", description="As in a ClusterRole.")
    namespaces: list[str] = Field([], description="The namespaces in which the rule applies. Empty means all.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if bool(self.resources) == bool(self.non_resource_urls):
            raise ValueError("give either resources or nonResourceURLs")
        return self


class NodeTaint(Model):
    """A taint in a Node's spec."""

    key: str = Field(min_length=1, description="The key, value or effect of the taint.")
    value: str = Field("", description="The key, value or effect of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="The key, value or effect of the taint."
    )


class Lab(Model):
    """A simulated cluster, started for a command and stopped after it."""

    workers: StrictInt = Field(3, ge=1, le=1000, description="The number of workers.")
    control_planes: Literal[1, 3, 5] = Field(
        1, alias="controlPlanes", description="with more than one: control-plane-1 and so on, with etcd as a static pod"
    )
    windows_workers: StrictInt = Field(
        0, ge=0, le=100, alias="windowsWorkers", description="besides workers: nodes with kubernetes.io/os: windows"
    )
    kubelet_service: Literal["service", "nssm"] = Field(
        "service", alias="kubeletService", description="of Windows nodes: a real service, or a program under nssm"
    )
    preshutdown_timeout: DurationText | None = Field(
        None, alias="preshutdownTimeout", description="of Windows nodes: as set after each start of the kubelet"
    )
    zones: list[str] = Field([], description="The zones of the workers, in turn.")
    kubernetes: SimulatedVersion = Field("v1.36.2", description="what differs between versions: docs/lab-versions.md")
    systemd: int = Field(252, description="version; 257 and later cancel a shutdown in flight")
    shutdown_grace_period: DurationText = Field(
        "30s", alias="shutdownGracePeriod", description="The shutdownGracePeriod of the workers' kubelets."
    )
    shutdown_grace_period_critical_pods: DurationText = Field(
        "10s",
        alias="shutdownGracePeriodCriticalPods",
        description="The shutdownGracePeriodCriticalPods of the workers' kubelets.",
    )
    shutdown_grace_period_by_pod_priority: list[PriorityGrace] = Field(
        [], alias="shutdownGracePeriodByPodPriority", description="needs the other two to be 0s"
    )
    feature_gates: dict[str, bool] = Field({}, alias="featureGates", description="of the kubelets")
    inhibitor_lost_after_cancel: Literal["always", "never", "seeded"] = Field(
        "always", alias="inhibitorLostAfterCancel", description="real ones usually do; seeded: in four of five cases"
    )
    disable_force_detach_on_timeout: Flag = Field(False, alias="disableForceDetachOnTimeout", description="the flag")
    register_with_taints: list[NodeTaint] = Field([], alias="registerWithTaints", description="of workers' new Nodes")
    node_labels: dict[str, str] = Field({}, alias="nodeLabels", description="of workers' new Nodes")
    unregistered_workers: StrictInt = Field(0, ge=0, alias="unregisteredWorkers", description="registerNode: false")
    allocate_node_cidrs: Flag = Field(False, alias="allocateNodeCIDRs", description="of the controller manager")
    swap: Quantity = Field("", description="of the workers, in /etc/fstab: on after each boot; as 2Gi")
    swapped_off: Flag = Field(False, alias="swappedOff", description="swap is off at first, until the next boot")
    fail_swap_on: Flag = Field(True, alias="failSwapOn", description="the workers' kubelets do not start with swap on")
    control_plane_labels: dict[str, str] = Field({}, alias="controlPlaneLabels", description="more labels of its Node")
    shared_identity: list[Literal["machine-id", "system-uuid", "boot-id", "host-key"]] = Field(
        [], alias="sharedIdentity", description="the same on all machines, as on clones of one image"
    )
    kubelet_identity: Literal["certificate", "hostname-override", "none"] = Field(
        "certificate", alias="kubeletIdentity", description="what names the Node on its host"
    )
    machine_id_per_boot: Flag = Field(
        False, alias="machineIdPerBoot", description="a new machine ID at each boot, as on kind's nodes (Linux)"
    )
    per_boot: list[Literal["container-id", "host-key", "address"]] = Field(
        [], alias="perBoot", description="what else is another one after each boot"
    )
    power_lies: Flag = Field(False, alias="powerLies", description="power controls answer, and do nothing")
    rights: list[Rule] | None = Field(None, description="permissions of nodefall in the lab; default: all")
    breakages: list[str] = Field([], description="faults of the lab; see nodefall lab breakages")
    seed: int = Field(1, description="The seed of all random choices.")
    speed: float = Field(20.0, gt=0, le=1000, description="maximum of simulated seconds per second")

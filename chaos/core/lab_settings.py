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
        1,
        alias="controlPlanes",
        description="The number of control planes. With more than one, etcd runs as a static pod on each.",
    )
    windows_workers: StrictInt = Field(
        0,
        ge=0,
        le=100,
        alias="windowsWorkers",
        description="The number of additional workers with kubernetes.io/os: windows.",
    )
    kubelet_service: Literal["service", "nssm"] = Field(
        "service",
        alias="kubeletService",
        description="How the kubelet of Windows nodes runs: as a real service, or under nssm.",
    )
    preshutdown_timeout: DurationText | None = Field(
        None,
        alias="preshutdownTimeout",
        description="The preshutdown timeout of Windows nodes, set after each start of the kubelet.",
    )
    zones: list[str] = Field([], description="The zones of the workers, in turn.")
    kubernetes: SimulatedVersion = Field(
        "v1.36.2", description="The simulated version. docs/lab-versions.md describes the differences."
    )
    systemd: int = Field(252, description="The version of systemd. 257 and later can cancel a shutdown in progress.")
    shutdown_grace_period: DurationText = Field(
        "30s", alias="shutdownGracePeriod", description="The shutdownGracePeriod of the workers' kubelets."
    )
    shutdown_grace_period_critical_pods: DurationText = Field(
        "10s",
        alias="shutdownGracePeriodCriticalPods",
        description="The shutdownGracePeriodCriticalPods of the workers' kubelets.",
    )
    shutdown_grace_period_by_pod_priority: list[PriorityGrace] = Field(
        [],
        alias="shutdownGracePeriodByPodPriority",
        description="Grace periods by pod priority. The other two grace periods must be 0s.",
    )
    feature_gates: dict[str, bool] = Field({}, alias="featureGates", description="The feature gates of the kubelets.")
    inhibitor_lost_after_cancel: Literal["always", "never", "seeded"] = Field(
        "always",
        alias="inhibitorLostAfterCancel",
        description="Whether a kubelet loses its lock after a cancelled shutdown. seeded: in four of five cases.",
    )
    disable_force_detach_on_timeout: Flag = Field(
        False, alias="disableForceDetachOnTimeout", description="The flag of the controller manager."
    )
    register_with_taints: list[NodeTaint] = Field(
        [], alias="registerWithTaints", description="The taints of new Nodes of workers."
    )
    node_labels: dict[str, str] = Field({}, alias="nodeLabels", description="The labels of new Nodes of workers.")
    unregistered_workers: StrictInt = Field(
        0,
        ge=0,
        alias="unregisteredWorkers",
        description="The number of workers whose kubelets have registerNode: false.",
    )
    allocate_node_cidrs: Flag = Field(
        False, alias="allocateNodeCIDRs", description="The flag of the controller manager."
    )
    swap: Quantity = Field(
        "", description="The size of the swap area in /etc/fstab of each worker, such as 2Gi. Each boot turns it on."
    )
    swapped_off: Flag = Field(False, alias="swappedOff", description="Swap is off until the next boot.")
    fail_swap_on: Flag = Field(
        True, alias="failSwapOn", description="Whether the kubelets of the workers refuse to start while swap is on."
    )
    control_plane_labels: dict[str, str] = Field(
        {}, alias="controlPlaneLabels", description="More labels for the Node of the control plane."
    )
    shared_identity: list[Literal["machine-id", "system-uuid", "boot-id", "host-key"]] = Field(
        [], alias="sharedIdentity", description="What all machines have in common, as clones of one image do."
    )
    kubelet_identity: Literal["certificate", "hostname-override", "none"] = Field(
        "certificate", alias="kubeletIdentity", description="What identifies the Node on its host."
    )
    machine_id_per_boot: Flag = Field(
        False, alias="machineIdPerBoot", description="Each boot creates a new machine ID, as on nodes of kind (Linux)."
    )
    per_boot: list[Literal["container-id", "host-key", "address"]] = Field(
        [], alias="perBoot", description="What else changes with each boot."
    )
    power_lies: Flag = Field(False, alias="powerLies", description="Power controls report success and do nothing.")
    rights: list[Rule] | None = Field(None, description="The permissions of nodefall in the lab. By default, all.")
    breakages: list[str] = Field([], description="Deliberate defects of the lab; nodefall lab breakages lists them.")
    seed: int = Field(1, description="The seed of all random choices.")
    speed: float = Field(20.0, gt=0, le=1000, description="The maximum number of simulated seconds per second.")

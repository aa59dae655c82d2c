"""The Inventory document: a cluster, the connections to its hosts, and the limits for experiments."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictInt, model_validator

from chaos.core.driver import OneOfPowerDrivers, OneOfTransports, PowerSettings
from chaos.core.duration import FACTS, known_fact, parse_duration
from chaos.core.field_types import (
    ContainerEngine,
    ContainerName,
    CrashTool,
    DurationText,
    Factor,
    Metadata,
    Model,
    Secret,
    SimulatedVersion,
    Url,
    full_match,
)
from chaos.core.labels import LOCK_NAMESPACE

NamespaceName = Annotated[str, full_match(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "is not a valid namespace")]
Quantity = Annotated[str, full_match(r"(\d+(k|[KMGT]i|[MGT])?)?", "is not a number of bytes; write it like 2Gi")]
OperatingSystem = Literal["linux", "windows"]
_LATE = ConfigDict(defer_build=True)  # the schema depends on the installed drivers: it is built when first needed


def _fact_name(name: str) -> str:
    if known_fact(name) not in FACTS:
        raise ValueError(f"{name!r} differs from pod to pod: it cannot be set for the cluster")
    return name


def _fact_value(value: Any) -> str:
    """A duration; a number without a unit means seconds, as in the configuration of the API server."""
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        parse_duration(text)
    return text


class TimeSource(Model):
    """Address of a clock other than the local one; the lab serves one."""

    address: str = "127.0.0.1"
    port: StrictInt = Field(ge=1, le=65535)


class ControllerManager(Model):
    """Metrics port of kube-controller-manager, read with the kubeconfig's credentials if an experiment needs it."""

    urls: list[
        Annotated[
            str,
            full_match(r"https://[^/?#@\s]+", "is not a URL like https://10.0.0.1:10257, without credentials and path"),
        ]
    ] = Field(min_length=1, description="of each replica: only the counters of the leader change")
    ca: str | None = Field(None, description="file; default: the cluster's CA")


class Cluster(Model):
    kubeconfig: str
    context: str | None = None
    expect_uid: str | None = Field(None, alias="expectUID", description="uid of the namespace kube-system")
    allow_node_proxy: bool = Field(False, alias="allowNodeProxy")
    kubelet_ca: str | None = Field(None, alias="kubeletCA", description="file; default: the cluster's CA")
    controller_manager: ControllerManager | None = Field(None, alias="controllerManager")
    namespace: NamespaceName = Field(LOCK_NAMESPACE, description="of the cluster's lock and the journals of runs")
    journal_key: Secret | None = Field(
        None, alias="journalKey", description="signs the journals in the cluster; at least 16 characters"
    )
    events: bool = Field(True, description="write an Event on each Node at inject and undo")
    facts: dict[Annotated[str, AfterValidator(_fact_name)], Annotated[str, BeforeValidator(_fact_value)]] = {}
    slack: Factor = Field(
        1.0, description="multiplies the durations of deadlines with timing: loose, for slow machines"
    )
    simulated: bool = Field(False, description="a lab, marked as such in reports")
    time_source: TimeSource | None = Field(None, alias="timeSource")


class Prometheus(Model):
    """A Prometheus. Certificates are verified by the CAs of certifi, or those in ``REQUESTS_CA_BUNDLE``."""

    url: Url
    user: str | None = Field(None, description="for basic authentication; credentials is the password")
    credentials: Secret | None = Field(None, description="bearer token, or the password of user")
    stale_after: DurationText = Field(
        "90s", alias="staleAfter", description="its data is unknown while its newest scrape is older"
    )

    @model_validator(mode="after")
    def _password(self) -> Self:
        if self.user and self.credentials is None:
            raise ValueError("user needs credentials")
        return self


class Connection(Model):
    """Connection to a host; in ``defaults`` for all hosts."""

    model_config = _LATE

    transport: Annotated[str, OneOfTransports()] | None = None
    options: dict[str, Any] = Field({}, description="of the transport, by its keys")
    engine: ContainerEngine | None = Field(
        None, description="of transport docker; default: docker where it is installed, else podman"
    )
    user: str | None = None
    port: StrictInt | None = Field(None, ge=1, le=65535)
    sudo: bool | None = None
    identity_file: str | None = Field(None, alias="identityFile")
    known_hosts: str | None = Field(None, alias="knownHosts")
    agent: bool | None = Field(None, description="offer the keys of the SSH agent; default true")
    proxy_jump: list[str] | None = Field(
        None, alias="proxyJump", description="hosts of this inventory or user@address:port"
    )
    connect_timeout: DurationText | None = Field(None, alias="connectTimeout")


class Host(Connection):
    node: str | None = Field(None, description="name of the Node object; default: the host's key")
    os: OperatingSystem = "linux"
    shell: Literal["cmd", "powershell"] | None = Field(
        None, description="DefaultShell of sshd on a Windows host; default: cmd"
    )
    crash_tool: CrashTool | None = Field(
        None, alias="crashTool", description="NotMyFault on a Windows host, for kernel-crash: its path"
    )
    address: str | None = None
    container: ContainerName | None = Field(
        None, description="of transport docker: name or ID; default: the Node's name"
    )
    power: Annotated[PowerSettings, OneOfPowerDrivers()] | None = None

    @model_validator(mode="after")
    def _keys_of_windows(self) -> Self:
        for key, value in (("shell", self.shell), ("crashTool", self.crash_tool)):
            if value is not None and self.os != "windows":
                raise ValueError(f"{key} needs os: windows")
        return self


class Defaults(Connection):
    """For all hosts, also those that the inventory does not list."""

    power: Annotated[PowerSettings, OneOfPowerDrivers()] | None = None

    @model_validator(mode="after")
    def _power_of_any_host(self) -> Self:
        if self.power is not None and self.power.names_machine:
            raise ValueError(f"power of kind {self.power.kind} is that of one machine here: give it to each host")
        return self


class ProtectedNodes(Model):
    roles: list[Literal["control-plane", "worker"]] = ["control-plane"]
    nodes: list[str] = []


class Limits(Model):
    max_nodes: StrictInt = Field(1, alias="maxNodes", ge=1)
    min_ready_nodes: StrictInt = Field(
        1,
        alias="minReadyNodes",
        ge=0,
        description="workers that must stay Ready; control planes do not count; 0 lets all workers be targets",
    )
    budgets: Literal["respect", "ignore"] = Field(
        "respect", description="ignore: nodes whose loss violates a PodDisruptionBudget may be targets too"
    )


class PriorityGrace(Model):
    """An entry of the kubelet's shutdownGracePeriodByPodPriority."""

    priority: StrictInt
    shutdown_grace_period_seconds: StrictInt = Field(alias="shutdownGracePeriodSeconds", ge=0)


class Rule(Model):
    """A rule of an RBAC role; empty ``namespaces`` mean all."""

    verbs: list[str] = Field(min_length=1)
    api_groups: list[str] = Field([""], alias="apiGroups")
    resources: list[str] = []
    resource_names: list[str] = Field([], alias="resourceNames")
    non_resource_urls: list[str] = Field([], alias="nonResourceURLs")
    namespaces: list[str] = []

    @model_validator(mode="after")
    def _something(self) -> Self:
        if bool(self.resources) == bool(self.non_resource_urls):
            raise ValueError("give either resources or nonResourceURLs")
        return self


class NodeTaint(Model):
    """A taint in a Node's spec."""

    key: str = Field(min_length=1)
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Lab(Model):
    """A simulated cluster, started for a command and stopped after it."""

    workers: StrictInt = Field(3, ge=1, le=1000)
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
    zones: list[str] = []
    kubernetes: SimulatedVersion = Field("v1.36.2", description="what differs between versions: docs/lab-versions.md")
    systemd: int = Field(252, description="version; 257 and later cancel a shutdown in flight")
    shutdown_grace_period: DurationText = Field("30s", alias="shutdownGracePeriod")
    shutdown_grace_period_critical_pods: DurationText = Field("10s", alias="shutdownGracePeriodCriticalPods")
    shutdown_grace_period_by_pod_priority: list[PriorityGrace] = Field(
        [], alias="shutdownGracePeriodByPodPriority", description="needs the other two to be 0s"
    )
    feature_gates: dict[str, bool] = Field({}, alias="featureGates", description="of the kubelets")
    inhibitor_lost_after_cancel: Literal["always", "never", "seeded"] = Field(
        "always", alias="inhibitorLostAfterCancel", description="real ones usually do; seeded: in four of five cases"
    )
    disable_force_detach_on_timeout: bool = Field(
        False, alias="disableForceDetachOnTimeout", description="of the controller manager"
    )
    register_with_taints: list[NodeTaint] = Field(
        [], alias="registerWithTaints", description="of the workers' kubelets: taints of new Nodes"
    )
    swap: Quantity = Field("", description="of the workers, in /etc/fstab: on after each boot; as 2Gi")
    swapped_off: bool = Field(False, alias="swappedOff", description="swap is off at first, until the next boot")
    fail_swap_on: bool = Field(True, alias="failSwapOn", description="the workers' kubelets do not start with swap on")
    control_plane_labels: dict[str, str] = Field({}, alias="controlPlaneLabels", description="more labels of its Node")
    shared_identity: list[Literal["machine-id", "system-uuid", "boot-id", "host-key"]] = Field(
        [], alias="sharedIdentity", description="the same on all machines, as on clones of one image"
    )
    kubelet_identity: Literal["certificate", "hostname-override", "none"] = Field(
        "certificate", alias="kubeletIdentity", description="what names the Node on its host"
    )
    machine_id_per_boot: bool = Field(
        False, alias="machineIdPerBoot", description="a new machine ID at each boot, as on kind's nodes (Linux)"
    )
    per_boot: list[Literal["container-id", "host-key", "address"]] = Field(
        [], alias="perBoot", description="what else is another one after each boot"
    )
    power_lies: bool = Field(False, alias="powerLies", description="power controls answer, and do nothing")
    rights: list[Rule] | None = Field(None, description="permissions of nodefall in the lab; default: all")
    breakages: list[str] = Field([], description="faults of the lab; see nodefall lab breakages")
    seed: int = 1
    speed: float = Field(20.0, gt=0, le=1000, description="maximum of simulated seconds per second")


class Inventory(Model):
    """An inventory file: either ``lab``, or ``cluster`` and ``hosts``."""

    model_config = _LATE

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["Inventory"]
    metadata: Metadata
    lab: Lab | None = None
    cluster: Cluster | None = None
    prometheus: Prometheus | None = None
    defaults: Defaults = Field(default_factory=Defaults)
    hosts: dict[str, Host] = {}
    protected: ProtectedNodes = ProtectedNodes()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        if (self.lab is None) == (self.cluster is None):
            raise ValueError("give exactly one of lab or cluster")
        if self.lab and self.hosts:
            raise ValueError("hosts are not allowed with lab: a lab creates its hosts")
        return self

    def host_of(self, node: str) -> tuple[str, Host]:
        """Key and entry of the host of a Node; without an entry the defaults: the Node's addresses are used."""
        key = next((key for key, host in self.hosts.items() if (host.node or key) == node), node)
        return key, self.host(key)

    def host(self, key: str) -> Host:
        """The entry of a host with the power control of ``defaults`` if it has none; an empty entry without one."""
        host = self.hosts.get(key, Host())
        if host.power is None and self.defaults.power is not None:
            return host.model_copy(update={"power": self.defaults.power})
        return host

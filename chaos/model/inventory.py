"""The Inventory document: a cluster, its hosts, how to reach them and what must not be touched."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, model_validator

from chaos.model.bound import FACTS, known_fact
from chaos.model.duration import parse_duration
from chaos.model.experiment import DurationText, Metadata, Model
from chaos.model.labels import LOCK_NAMESPACE


def _pattern_validator(pattern: str, says: str) -> AfterValidator:
    """A text that is all ``pattern``; ``says`` is what is told of another one."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {says}")
        return text

    return AfterValidator(check)


NamespaceName = Annotated[str, _pattern_validator(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "is no name of a namespace")]
SimulatedVersion = Annotated[
    str, _pattern_validator(r"v1\.36\.\d+", "is not simulated; the lab behaves as v1.36: give v1.36.2 or another patch")
]
Quantity = Annotated[str, _pattern_validator(r"(\d+(k|[KMGT]i|[MGT])?)?", "is no number of bytes; write 2Gi")]
MacAddress = Annotated[
    str, _pattern_validator(r"[0-9A-Fa-f]{2}([:-]?[0-9A-Fa-f]{2}){5}", "is no MAC address; write 52:54:00:12:34:56")
]
HostAddress = Annotated[str, _pattern_validator(r"[A-Za-z0-9:][A-Za-z0-9:.%_-]*", "is neither a name nor an address")]
ContainerName = Annotated[str, _pattern_validator(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "is no container's name or ID")]


def _fact_name(name: str) -> str:
    if known_fact(name) not in FACTS:
        raise ValueError(f"{name!r} differs from pod to pod; the cluster has no one value for it")
    return name


def _fact_value(value: Any) -> str:
    """A duration; a bare number is seconds, as in the API's own configuration."""
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        parse_duration(text)
    return text


def _no_login(url: str) -> str:
    """A login in a URL would be a secret in a file, and end in run.json."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("a login is not written into a URL; give it beside, with the secret as a reference")
    return url


Url = Annotated[str, AfterValidator(_no_login)]


class Secret(Model):
    """Where a secret is, never the secret."""

    env: str | None = None
    file: str | None = None
    command: list[str] | None = Field(None, min_length=1, description="argv, run without a shell")

    @model_validator(mode="before")
    @classmethod
    def _reference(cls, value: Any) -> Any:
        if not isinstance(value, dict | Secret):
            where = "{env: NAME}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}"
            raise ValueError(f"a secret is not written in a file; say where it is: {where}")  # noqa: TRY004 - pydantic wants it
        return value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(x is not None for x in (self.env, self.file, self.command)) != 1:
            raise ValueError("give exactly one of env, file or command")
        return self


class TimeSource(Model):
    """A clock other than this machine's; the lab serves one."""

    address: str = "127.0.0.1"
    port: StrictInt = Field(ge=1, le=65535)


class ControllerManager(Model):
    """kube-controller-manager's own port, asked with the kubeconfig's credentials where an experiment wants it."""

    urls: list[
        Annotated[
            str, _pattern_validator(r"https://[^/?#@\s]+", "is not like https://10.0.0.1:10257, without login and path")
        ]
    ] = Field(min_length=1, description="of each replica: only the counters of the one that leads move")
    ca: str | None = Field(None, description="file; default: the cluster's CA")


class Cluster(Model):
    kubeconfig: str
    context: str | None = None
    expect_uid: str | None = Field(None, alias="expectUID", description="uid of the namespace kube-system")
    allow_node_proxy: bool = Field(False, alias="allowNodeProxy")
    kubelet_ca: str | None = Field(None, alias="kubeletCA", description="file; default: the cluster's CA")
    controller_manager: ControllerManager | None = Field(None, alias="controllerManager")
    namespace: NamespaceName = Field(
        LOCK_NAMESPACE, description="where the cluster's lock and the journals of runs are kept"
    )
    events: bool = Field(True, description="write an Event on each Node at inject and undo")
    facts: dict[Annotated[str, AfterValidator(_fact_name)], Annotated[str, BeforeValidator(_fact_value)]] = {}
    simulated: bool = Field(False, description="a lab; reports say so")
    time_source: TimeSource | None = Field(None, alias="timeSource")


class Prometheus(Model):
    """Certificates are checked against certifi's authorities, or those in ``REQUESTS_CA_BUNDLE``."""

    url: Url
    user: str | None = Field(None, description="for basic authentication; credentials is then the password")
    credentials: Secret | None = Field(None, description="bearer token, or the password of user")
    stale_after: DurationText = Field(
        "90s", alias="staleAfter", description="nothing is seen while its newest scrape is older than this"
    )

    @model_validator(mode="after")
    def _password(self) -> Self:
        if self.user and self.credentials is None:
            raise ValueError("user needs credentials")
        return self


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


Argv = Annotated[list[str], Field(min_length=1)]
ContainerEngine = Literal["docker", "podman"]


class RedfishPower(Model):
    kind: Literal["redfish"]
    url: Url = Field(description="of the ComputerSystem, as https://bmc/redfish/v1/Systems/1")
    user: str | None = None
    password: Secret | None = None
    ca_file: str | None = Field(None, alias="caFile")


class IpmiPower(Model):
    kind: Literal["ipmi"]
    address: HostAddress = Field(description="of the BMC")
    port: StrictInt = Field(623, ge=1, le=65535)
    user: str
    password: Secret
    cipher_suite: StrictInt | None = Field(
        None, alias="cipherSuite", ge=1, le=17, description="default: the best that the BMC offers"
    )


class DockerPower(Model):
    kind: Literal["docker"]
    container: ContainerName | None = Field(None, description="name or ID; default: the Node's name")
    engine: ContainerEngine | None = Field(None, description="default: docker where it is installed, else podman")


class ExitMatch(Model):
    """What a program says by its end: an exit code, what it prints, or both."""

    exit: list[StrictInt] | None = Field(None, min_length=1)
    output: Annotated[str, AfterValidator(_pattern)] | None = Field(
        None, description="regular expression that fits somewhere in its standard output"
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.exit is None and self.output is None:
            raise ValueError("give exit, output or both")
        return self


class CommandPower(Model):
    """Programs of this machine, run without a shell; on and off must end with 0."""

    kind: Literal["command"]
    on: Argv
    off: Argv | None = None
    status: Argv
    is_on: ExitMatch = Field(alias="isOn", description="when status means on")
    is_off: ExitMatch = Field(alias="isOff", description="when status means off")
    environment: dict[str, Secret] = Field({}, description="secrets for the programs, by environment variable")
    timeout: DurationText = "30s"


class ManualPower(Model):
    kind: Literal["manual"]
    deadline: DurationText = Field("5m", description="for the person who is asked")


class WakeOnLanPower(Model):
    kind: Literal["wake-on-lan"]
    mac: MacAddress
    broadcast: str = Field("255.255.255.255", description="address that the packet is sent to")
    port: StrictInt = Field(9, ge=1, le=65535)


Power = Annotated[
    RedfishPower | IpmiPower | DockerPower | CommandPower | ManualPower | WakeOnLanPower, Field(discriminator="kind")
]


class Connection(Model):
    """How to reach a host; in ``defaults`` for all of them."""

    transport: Literal["ssh", "docker"] | None = None
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
    os: Literal["linux"] = "linux"
    address: str | None = None
    container: ContainerName | None = Field(
        None, description="of transport docker: name or ID; default: the Node's name"
    )
    power: Power | None = None


class ProtectedNodes(Model):
    roles: list[Literal["control-plane", "worker"]] = ["control-plane"]
    nodes: list[str] = []


class Limits(Model):
    max_nodes: StrictInt = Field(1, alias="maxNodes", ge=1)
    min_ready_nodes: StrictInt = Field(1, alias="minReadyNodes", ge=1)
    budgets: Literal["respect", "ignore"] = Field(
        "respect", description="ignore: also nodes whose loss overdraws a PodDisruptionBudget may be targets"
    )


class PriorityGrace(Model):
    """As in the kubelet's configuration."""

    priority: StrictInt
    shutdown_grace_period_seconds: StrictInt = Field(alias="shutdownGracePeriodSeconds", ge=0)


class Rule(Model):
    """As in an RBAC role; ``namespaces`` empty is everywhere."""

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
    """As in a Node's spec."""

    key: str = Field(min_length=1)
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Lab(Model):
    """A simulated cluster that is started for the command and stopped after it."""

    workers: StrictInt = Field(3, ge=1, le=1000)
    zones: list[str] = []
    kubernetes: SimulatedVersion = "v1.36.2"
    systemd: int = Field(252, description="version; 257 and later cancel a shutdown in flight")
    shutdown_grace_period: DurationText = Field("30s", alias="shutdownGracePeriod")
    shutdown_grace_period_critical_pods: DurationText = Field("10s", alias="shutdownGracePeriodCriticalPods")
    shutdown_grace_period_by_pod_priority: list[PriorityGrace] = Field(
        [], alias="shutdownGracePeriodByPodPriority", description="needs the other two to be 0s"
    )
    inhibitor_lost_after_cancel: Literal["always", "never", "seeded"] = Field("never", alias="inhibitorLostAfterCancel")
    disable_force_detach_on_timeout: bool = Field(
        False, alias="disableForceDetachOnTimeout", description="of the controller manager"
    )
    register_with_taints: list[NodeTaint] = Field(
        [], alias="registerWithTaints", description="of the workers' kubelets: what their Nodes begin with"
    )
    swap: Quantity = Field("", description="of the workers, in their /etc/fstab: on from each boot, as 2Gi")
    swapped_off: bool = Field(False, alias="swappedOff", description="by hand at first, until the next boot")
    fail_swap_on: bool = Field(True, alias="failSwapOn", description="the workers' kubelets do not start with swap on")
    control_plane_labels: dict[str, str] = Field(
        {}, alias="controlPlaneLabels", description="of its Node, beside the usual ones"
    )
    rights: list[Rule] | None = Field(None, description="all that nodefall may do there; default: everything")
    breakages: list[str] = Field([], description="what it is to do wrong; see nodefall lab breakages")
    seed: int = 1
    speed: float = Field(20.0, gt=0, le=1000, description="at most so many simulated seconds a second")


class Inventory(Model):
    """One inventory file: either ``lab`` or ``cluster`` and ``hosts``."""

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["Inventory"]
    metadata: Metadata
    lab: Lab | None = None
    cluster: Cluster | None = None
    prometheus: Prometheus | None = None
    defaults: Connection = Connection()
    hosts: dict[str, Host] = {}
    protected: ProtectedNodes = ProtectedNodes()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        if (self.lab is None) == (self.cluster is None):
            raise ValueError("give exactly one of lab or cluster")
        if self.lab and self.hosts:
            raise ValueError("a lab makes its own hosts; remove hosts")
        return self

    def host_of(self, node: str) -> tuple[str, Host]:
        """The host's key and entry for a Node; an unlisted one is reached by its Node addresses."""
        for key, host in self.hosts.items():
            if (host.node or key) == node:
                return key, host
        return node, Host()

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
    Flag,
    Metadata,
    Model,
    Secret,
    full_match,
)
from chaos.core.kube_names import Namespace
from chaos.core.lab_settings import Lab
from chaos.core.labels import LOCK_NAMESPACE
from chaos.core.number_types import Factor
from chaos.core.prometheus import Prometheus

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

    address: str = Field("127.0.0.1", description="The address or port of the clock.")
    port: StrictInt = Field(ge=1, le=65535, description="The address or port of the clock.")


class ControllerManager(Model):
    """Metrics port of kube-controller-manager, read with the kubeconfig's credentials if an experiment needs it."""

    urls: list[
        Annotated[
            str,
            full_match(r"https://[^/?#@\s]+", "is not a URL like https://10.0.0.1:10257, without credentials and path"),
        ]
    ] = Field(min_length=1, description="The URL of each replica. Only the counters of the leader change.")
    ca: str | None = Field(None, description="The file with the CA certificate. The default is the CA of the cluster.")


class Cluster(Model):
    kubeconfig: str = Field(
        description="The file, or several files separated by colons as in KUBECONFIG. Empty: the files that kubectl "
        "would use, or in a pod its service account."
    )
    context: str | None = Field(None, description="The context of the kubeconfig. By default, its current context.")
    expect_uid: str | None = Field(
        None, alias="expectUID", description="The UID of the namespace kube-system. Any other cluster is refused."
    )
    allow_node_proxy: Flag = Field(
        False,
        alias="allowNodeProxy",
        description="Read kubelets through the API server. The permission for this amounts to root on every node.",
    )
    kubelet_ca: str | None = Field(
        None, alias="kubeletCA", description="The file with the CA certificate. The default is the CA of the cluster."
    )
    controller_manager: ControllerManager | None = Field(
        None, alias="controllerManager", description="How to read the metrics of the controller manager."
    )
    namespace: Namespace = Field(LOCK_NAMESPACE, description="The namespace of the cluster's lock and of the journals.")
    journal_key: Secret | None = Field(
        None,
        alias="journalKey",
        description="The key that signs the journals in the cluster, with at least 16 characters.",
    )
    events: Flag = Field(True, description="Write an Event for each Node when a fault is injected and undone.")
    facts: dict[Annotated[str, AfterValidator(_fact_name)], Annotated[str, BeforeValidator(_fact_value)]] = Field(
        {}, description="Values that nodefall cannot read, such as controller.nodeMonitorGracePeriod."
    )
    slack: Factor = Field(
        1.0, description="For slow machines: multiplies the durations of deadlines with timing: loose."
    )
    simulated: Flag = Field(False, description="Whether the cluster is simulated. Reports mark it.")
    time_source: TimeSource | None = Field(
        None, alias="timeSource", description="A clock to wait by. Only labs need it."
    )


class Connection(Model):
    """Connection to a host; in ``defaults`` for all hosts."""

    model_config = _LATE

    transport: Annotated[str, OneOfTransports()] | None = Field(None, description="How commands reach the host.")
    options: dict[str, Any] = Field({}, description="The options of the transport.")
    engine: ContainerEngine | None = Field(
        None, description="For transport docker: the engine. By default, docker if it is installed, otherwise podman."
    )
    user: str | None = Field(None, description="The user who logs in.")
    port: StrictInt | None = Field(None, ge=1, le=65535, description="The port of the SSH server or of WinRM.")
    sudo: Flag | None = Field(None, description="Run commands with sudo. By default, unless the user is root.")
    identity_file: str | None = Field(None, alias="identityFile", description="The file of the private key.")
    known_hosts: str | None = Field(None, alias="knownHosts", description="The file with the keys of known hosts.")
    agent: Flag | None = Field(None, description="Whether to offer the keys of the SSH agent. By default, true.")
    proxy_jump: list[str] | None = Field(
        None, alias="proxyJump", description="The jump hosts: hosts of this inventory, or user@address:port."
    )
    connect_timeout: DurationText | None = Field(
        None, alias="connectTimeout", description="How long a connection attempt may take before it counts as failed."
    )


class Host(Connection):
    node: str | None = Field(None, description="The name of the Node object. By default, the key of the host.")
    os: OperatingSystem = Field("linux", description="The operating system of the host.")
    shell: Literal["cmd", "powershell"] | None = Field(
        None, description="The DefaultShell of sshd on a Windows host. By default, cmd."
    )
    crash_tool: CrashTool | None = Field(
        None, alias="crashTool", description="The path of NotMyFault on a Windows host, for kernel-crash."
    )
    address: str | None = Field(
        None, description="The name or IP address of the host. By default, the InternalIP of the Node."
    )
    container: ContainerName | None = Field(
        None, description="For transport docker: the name or ID of the container. By default, the Node's name."
    )
    power: Annotated[PowerSettings, OneOfPowerDrivers()] | None = Field(
        None, description="How the machine is powered off and on."
    )

    @model_validator(mode="after")
    def _keys_of_windows(self) -> Self:
        for key, value in (("shell", self.shell), ("crashTool", self.crash_tool)):
            if value is not None and self.os != "windows":
                raise ValueError(f"{key} needs os: windows")
        return self


class Defaults(Connection):
    """Settings for all hosts, including hosts that the inventory does not list."""

    power: Annotated[PowerSettings, OneOfPowerDrivers()] | None = Field(
        None, description="How the machine is powered off and on."
    )

    @model_validator(mode="after")
    def _power_of_any_host(self) -> Self:
        if self.power is not None and self.power.names_machine:
            raise ValueError(f"power of kind {self.power.kind} belongs to a single machine here: set it for each host")
        return self


class ProtectedNodes(Model):
    roles: list[Literal["control-plane", "worker"]] = Field(
        ["control-plane"], description="All nodes with these roles."
    )
    nodes: list[str] = Field([], description="The names of the nodes.")


class Limits(Model):
    max_nodes: StrictInt = Field(1, alias="maxNodes", ge=1, description="The number of nodes that a run may affect.")
    min_ready_nodes: StrictInt = Field(
        1,
        alias="minReadyNodes",
        ge=0,
        description="How many workers must stay Ready, without control planes. 0 lets all workers be targets.",
    )
    budgets: Literal["respect", "ignore"] = Field(
        "respect", description="ignore: nodes whose loss violates a PodDisruptionBudget may be targets, too."
    )


class Inventory(Model):
    """An inventory file: either ``lab``, or ``cluster`` and ``hosts``."""

    ONE_OF = ("lab", "cluster")
    model_config = _LATE

    api_version: Literal["nodefall.dev/v1alpha1"] = Field(alias="apiVersion", description="The version of this format.")
    kind: Literal["Inventory"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The name of the inventory. A run on real machines asks you to type it.")
    lab: Lab | None = Field(
        None, description="A simulated cluster that nodefall starts for the run, instead of `cluster`."
    )
    cluster: Cluster | None = Field(None, description="The cluster on which nodefall injects faults.")
    prometheus: Prometheus | None = Field(None, description="The Prometheus that answers queries.")
    defaults: Defaults = Field(default_factory=Defaults, description="Settings of all hosts.")
    hosts: dict[str, Host] = Field({}, description="What differs from the defaults, for each Node by its name.")
    protected: ProtectedNodes = Field(ProtectedNodes(), description="Nodes that are never a target.")
    limits: Limits = Field(Limits(), description="Limits of every run.")

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        if self.lab and self.hosts:
            raise ValueError("hosts are not allowed with lab: a lab creates its hosts")
        return self

    def host_of(self, node: str) -> tuple[str, Host]:
        """Key and entry of the host of a Node; without an entry the defaults: the Node's addresses are used."""
        key = next((key for key, host in self.hosts.items() if (host.node or key) == node), node)
        return key, self.host(key)

    def host(self, key: str) -> Host:
        """The entry of a host, or an empty entry. The power control comes from ``defaults`` if the entry has none."""
        host = self.hosts.get(key, Host())
        if host.power is None and self.defaults.power is not None:
            return host.model_copy(update={"power": self.defaults.power})
        return host

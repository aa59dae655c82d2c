"""Input of the checks: the data collected from a cluster and its hosts, and the needs of the experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from chaos.core.action import Target
from chaos.core.cluster_view import ClusterView
from chaos.core.errors import NodefallError
from chaos.core.inventory import Inventory
from chaos.core.node_mark import FoundMark
from chaos.core.permission import Permission
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.core.result import PendingUndoFinding
from chaos.verdicts.judge.facts import kubelet_fact


class Need(StrEnum):
    """An experiment's needs that checks depend on."""

    HOST = "host"  # a session on the host
    ROOT = "root"  # commands run as root there
    LOGIND = "logind"  # logind answers there
    GRACEFUL = "graceful"  # the kubelet terminates pods when the machine shuts down
    DOWN = "down"  # the machine goes down and must be powered on again
    ENDS_PODS = "ends-pods"  # pods of the node may be terminated in spite of their budgets
    CONTAINERS = "containers"  # an assertion asks which containers run on the host
    KUBELET_CONFIG = "kubelet-config"  # bounds that depend on the kubelet's configuration


@dataclass(frozen=True, slots=True)
class ExperimentNeeds:
    """One experiment: its needs, the ``nodes`` that may become targets, ``requires`` and ``kubernetes`` as in its file.

    Errors are pairs of a message and a hint. ``missing_permissions`` are those that the credentials lack.
    ``step_error`` returns why the steps cannot run on one of ``nodes`` ("": steps on the cluster), ``target_error`` is
    why no targets can be selected. ``source_errors`` has the error of each data source by name of the check, () for a
    source that answers.
    """

    name: str
    needs: frozenset[Need]
    nodes: tuple[str, ...] = ()
    requires: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kubernetes: str = ""
    max_duration: float = 900.0
    missing_permissions: tuple[Permission, ...] = ()
    target_error: tuple[str, str] | None = None
    source_errors: Mapping[str, tuple[str, str] | tuple[()]] = field(default_factory=dict)
    step_error: Callable[[str], tuple[str, str] | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class HostObservations:
    """The host of a node; ``target`` has its facts, and why other facts are unknown.

    ``error`` and ``hint`` are why the host could not be reached. ``is_skipped``: the experiments do not use the host,
    so no connection was made. ``power_identity`` is what its power control reports of the machine that it switches,
    ``power_risks`` why its provider might not keep a machine that is down.
    ``clock_offset`` is the host's clock minus the local one, in seconds, plus or minus ``clock_uncertainty``.
    """

    node: str
    target: Target
    error: str = ""
    hint: str = ""
    power_identity: PowerIdentity = field(default_factory=PowerIdentity)
    power_risks: tuple[PowerRisk, ...] = ()
    clock_offset: float | None = None
    clock_uncertainty: float = 0.0
    is_skipped: bool = False

    @property
    def is_reachable(self) -> bool:
        return not self.error and not self.is_skipped

    def fact(self, name: str) -> Any:
        """Value of a fact, None if it is unknown."""
        return self.target.facts.get(name)

    def unknown_reason(self, name: str) -> str:
        """The reason why a fact is unknown."""
        return self.target.unknown.get(name, "it was not read")

    @property
    def shutdown_grace(self) -> float | None:
        """The kubelet's shutdownGracePeriod in seconds, None if its configuration is unknown."""
        return kubelet_fact(self.fact("configz") or {}, "kubelet.shutdownGracePeriod")


@dataclass(frozen=True, slots=True)
class LocalIdentity:
    """The identity of this machine, which must never be a target. ``addresses`` do not include loopback. ``pod`` is
    ``namespace/name`` of the pod that nodefall runs in, "" if none, by its host name; ``pod_uid`` its UID, "" where
    it is unknown.
    """

    machine_id: str = ""
    addresses: frozenset[str] = frozenset()
    boot_id: str = ""
    pod: str = ""
    pod_uid: str = ""


@dataclass(frozen=True, slots=True)
class HelperNamespace:
    """A namespace of helper pods: its labels, the pods ``left`` by other processes, or the ``error`` of reading it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class ClusterObservations:
    """All data that was collected before a fault.

    ``lists`` are API objects by collection, as JSON; ``list_errors`` why other collections could not be listed.
    ``api_server_addresses`` are those that nodefall connects to, ``jump_addresses`` those of jump hosts by name.
    ``known_host_keys`` are the host keys that nodefall accepts of each node of the inventory. ``transport_problems``
    are what on this machine keeps transport openssh from each node that it reaches. ``lock_holder`` is the
    identity that holds the cluster's lock, ``lock_run`` its run, ``pending_undo`` what earlier runs have to undo,
    ``stale_marks`` marks on Nodes that have the values from before the marked step. ``connection_risks`` describe what
    weakens the connection to the API server, ``kubernetes`` is its version. ``hosts_are_targets``: all hosts are
    targets of one run; otherwise each may become one. ``helper_namespaces``: those of the pods of transport pod.
    """

    view: ClusterView
    inventory: Inventory
    experiments: tuple[ExperimentNeeds, ...]
    hosts: Mapping[str, HostObservations] = field(default_factory=dict)
    lists: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    list_errors: Mapping[str, str] = field(default_factory=dict)
    local_identity: LocalIdentity = LocalIdentity()
    api_server_addresses: frozenset[str] = frozenset()
    jump_addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    known_host_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    transport_problems: Mapping[str, tuple[NodefallError, ...]] = field(default_factory=dict)
    lock_holder: str = ""
    lock_run: str = ""
    pending_undo: tuple[PendingUndoFinding, ...] = ()
    stale_marks: tuple[FoundMark, ...] = ()
    connection_risks: tuple[str, ...] = ()
    kubernetes: str = ""
    hosts_are_targets: bool = False
    helper_namespaces: tuple[HelperNamespace, ...] = ()

    def of_systems(self, systems: frozenset[str]) -> ClusterObservations:
        """These observations, limited to hosts with one of the operating systems."""
        if all(host.target.os in systems for host in self.hosts.values()):
            return self
        return replace(self, hosts={name: host for name, host in self.hosts.items() if host.target.os in systems})

    def reachable_hosts(self) -> Iterator[HostObservations]:
        """Hosts that answered, by name."""
        return (host for _, host in sorted(self.hosts.items()) if host.is_reachable)


def fault_groups(observations: ClusterObservations) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Groups of nodes that one fault may take down together, each with the host to report ("": the cluster)."""
    nodes = tuple(sorted(observations.hosts))
    if observations.hosts_are_targets and len(nodes) > 1:
        yield "", nodes
    else:
        yield from ((node, (node,)) for node in nodes)


# Collections that checks read. A missing permission or an absent kind is no error.
DEPLOYMENTS, DAEMONSETS = "/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
HEALTH_CHECKS = (
    "/apis/cluster.x-k8s.io/v1beta2/machinehealthchecks",
    "/apis/cluster.x-k8s.io/v1beta1/machinehealthchecks",
    "/apis/machine.openshift.io/v1beta1/machinehealthchecks",
)
NODE_HEALTH_CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks"


def machines_of(health_checks: str) -> str:
    """The API path of the Machines that MachineHealthChecks select."""
    return f"{health_checks.rpartition('/')[0]}/machines"


LISTS = (
    *(DEPLOYMENTS, DAEMONSETS, BUDGETS, SLICES, VALIDATING, MUTATING, NODE_HEALTH_CHECKS),
    *(path for checks in HEALTH_CHECKS for path in (checks, machines_of(checks))),
)

"""What checks look at: everything that was gathered of a cluster, of its hosts, and what experiments need of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from chaos.judge.facts import kubelet_fact
from chaos.model.action import Target
from chaos.model.inventory import Inventory
from chaos.model.permission import Permission
from chaos.plan.cluster import ClusterView


class Need(StrEnum):
    """What an experiment needs of a cluster and its hosts."""

    HOST = "host"  # a session on it
    ROOT = "root"  # on it
    LOGIND = "logind"  # an answer of it
    GRACEFUL = "graceful"  # that the kubelet ends pods when the machine shuts down
    DOWN = "down"  # that the machine comes back
    ENDS_PODS = "ends-pods"  # that pods of the node may end, whatever their budgets say
    KUBELET_CONFIG = "kubelet-config"  # numbers out of it


@dataclass(frozen=True, slots=True)
class ExperimentNeeds:
    """An experiment: ``needs`` what, ``nodes`` are those that it might touch, ``requires`` as it is written.

    ``lacking`` are rights that it needs and nobody gave us. ``prepare`` tells why its steps cannot be done on a node of
    ``nodes`` ("" stands for steps about the cluster), as (what, how to mend it); ``unfit`` why its targets cannot be
    chosen, ``unanswered`` why somebody else whom it asks does not answer, by name of the check (() if that answers).
    """

    name: str
    needs: frozenset[Need]
    nodes: tuple[str, ...] = ()
    requires: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    max_duration: float = 900.0
    missing_permissions: tuple[Permission, ...] = ()
    target_error: tuple[str, str] | None = None
    source_errors: Mapping[str, tuple[str, str] | tuple[()]] = field(default_factory=dict)
    step_error: Callable[[str], tuple[str, str] | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class HostObservations:
    """A node's host. ``target`` holds its facts, and why others are unknown.

    ``error`` tells why it could not be reached, with ``hint``; ``silent``: nobody asks it anything. ``power_error`` is
    why its power control is not to be trusted. ``ahead`` and ``within``: the host's clock less ours, in seconds.
    """

    node: str
    target: Target
    error: str = ""
    hint: str = ""
    power_error: str = ""
    power_hint: str = ""
    clock_offset: float | None = None
    clock_uncertainty: float = 0.0
    is_skipped: bool = False

    @property
    def is_reachable(self) -> bool:
        return not self.error and not self.is_skipped

    def fact(self, name: str) -> Any:
        """None where it is not known."""
        return self.target.facts.get(name)

    def unknown_reason(self, name: str) -> str:
        """Why a fact is not known."""
        return self.target.unknown.get(name, "it was not read")

    @property
    def shutdown_grace(self) -> float | None:
        """The whole of the kubelet's shutdown grace period in seconds; None where its configuration is not known."""
        return kubelet_fact(self.fact("configz") or {}, "kubelet.shutdownGracePeriod")


@dataclass(frozen=True, slots=True)
class LocalIdentity:
    """This machine, which must never be a target: ``addresses`` without loopback; ``pod`` is ``namespace/name`` of the
    pod that nodefall runs in, "" outside of one.
    """

    machine_id: str = ""
    addresses: frozenset[str] = frozenset()
    boot_id: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True)
class ClusterObservations:
    """``lists``: objects of the API by collection, as JSON; ``unlisted`` why others could not be listed.

    ``server`` are the addresses of the API server that we use, and ``jumps`` those of jump hosts, by name.
    ``holder`` is who is at work on the cluster, ``debts`` what earlier runs owe there, in words, by run.
    ``chosen``: the hosts are targets of one run, touched together; else each may become one.
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
    lock_holder: str = ""
    pending_undo: Mapping[str, str] = field(default_factory=dict)
    hosts_are_targets: bool = False

    def reachable_hosts(self) -> Iterator[HostObservations]:
        """The hosts that answered, by name."""
        return (host for _, host in sorted(self.hosts.items()) if host.is_reachable)


def fault_groups(signs: ClusterObservations) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Nodes that one fault may take at once, each group with the host that a finding about it belongs to."""
    nodes = tuple(sorted(signs.hosts))
    if signs.hosts_are_targets and len(nodes) > 1:
        yield "", nodes
    else:
        yield from ((node, (node,)) for node in nodes)


# Listed for the checks, where we may; that a right is missing or a kind is not there is no error.
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
    """Where the Machines are that MachineHealthChecks select."""
    return f"{health_checks.rpartition('/')[0]}/machines"


LISTS = (
    *(DEPLOYMENTS, DAEMONSETS, BUDGETS, SLICES, VALIDATING, MUTATING, NODE_HEALTH_CHECKS),
    *(path for checks in HEALTH_CHECKS for path in (checks, machines_of(checks))),
)

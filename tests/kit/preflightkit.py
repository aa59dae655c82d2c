"""Made-up clusters for the tables of checks: everything is in order unless a test changes it."""

from __future__ import annotations

from typing import Any

import msgspec

import chaos.engine.preflight.checks
from chaos.core.action import Target
from chaos.core.cluster_view import ClusterView
from chaos.core.inventory import Inventory
from chaos.core.kube import Node, Pod
from chaos.core.registry import discover
from chaos.engine.observations import (
    LISTS,
    ClusterObservations,
    ExperimentNeeds,
    HostObservations,
    LocalIdentity,
    Need,
)
from chaos.engine.preflight.check import Check, Diagnosis

CHECKS: dict[str, Check] = discover(chaos.engine.preflight.checks, Check)
OWN = LocalIdentity("0123456789abcdef0123456789abcdef", frozenset({"10.0.0.99"}), "our-boot")
FACTS: dict[str, Any] = {
    "machine-id": "fedcba9876543210fedcba9876543210",
    "stable-id": "machine fedcba9876543210fedcba9876543210",
    "boot-id": "its-boot",
    "pid1-start": 1.0,
    "root": True,
    "kubelet-unit": "kubelet.service",
    "inhibitor-kubelet": True,
    "inhibitor-locks": [],
    "inhibit-delay-max": "t 30000000",
    "failsafe-timers": [],
    "nft-rules": False,
    "disk-filler": "inactive",
    "memory-filler": "inactive",
    "pid-filler": "inactive",
    "clock-skew": 0,
    "kubelet-stopped-state": False,
    "systemd-version": 252,
    "runtime-socket": "/run/containerd/containerd.sock",
    "runtime-client": "/usr/bin/crictl",
    "shared-kernel": False,
    "ssh-peer": {"address": "10.0.0.99", "port": 22},
    "host-addresses": ["10.0.0.1", "172.17.0.1"],
    "host-time": 1000.0,
    "control-plane-files": [],
    "configz": {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"},
}
WINDOWS_FACTS: dict[str, Any] = {
    "machine-id": "n1",
    "boot-id": "31",
    "root": True,
    "kubelet-unit": "kubelet",
    "kubelet-state": "active",
    "kubelet-binary": r"C:\k\kubelet.exe --windows-service --config=C:\k\config.yaml",
    "kubelet-shutdown-control": "preshutdown",
    "preshutdown-timeout": 30.0,
    "preshutdown-order": ["UsoSvc", "kubelet", "containerd"],
    "pending-reboot": [],
    "firewall-state": {"Domain": "on"},
    "winrm-quotas": {"MaxShellsPerUser": 30, "MaxProcessesPerShell": 25, "MaxConcurrentOperationsPerUser": 1500},
    "failsafe-timers": [],
    "host-time": 1000.0,
    "configz": {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"},
}
EVERYTHING = frozenset(Need)
USE = ExperimentNeeds("x", EVERYTHING, ("n1", "n2"))
READY = [{"type": "Ready", "status": "True"}]


def inventory(**more: Any) -> Inventory:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "i"}}
    return Inventory.model_validate(head | {"cluster": {"kubeconfig": "k"}} | more)


def node(
    name: str,
    *addresses: str,
    labels: dict[str, str] | None = None,
    machine_id: str = "",
    ready: bool = True,
    **info: str,
) -> Node:
    """A Node; ``info`` are further fields of its nodeInfo."""
    status_addresses = [{"type": "InternalIP", "address": address} for address in addresses]
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"conditions": conditions, "addresses": status_addresses, "nodeInfo": {"machineID": machine_id} | info}
    return msgspec.convert({"metadata": {"name": name, "labels": labels or {}}, "status": status}, Node)


def pod(name: str, on: str, *, owner: str = "", grace: int = 30, namespace: str = "default", **more: Any) -> Pod:
    owners = [{"kind": owner, "name": "o", "controller": True}] if owner else []
    metadata = {"name": name, "namespace": namespace, "ownerReferences": owners} | more
    spec = {"nodeName": on, "terminationGracePeriodSeconds": grace}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"conditions": READY}}, Pod)


def host(
    name: str = "n1",
    without: str = "",
    static: tuple[str, ...] = (),
    power: str = "power",
    power_error: str = "",
    **facts: Any,
) -> HostObservations:
    """A host with all facts known: those of ``facts`` (``_`` for ``-``) are replaced, ``without`` is unknown."""
    known = (
        FACTS | {"kubelet-user": f"system:node:{name}"} | {key.replace("_", "-"): value for key, value in facts.items()}
    )
    known.pop(without, None)
    unknown = {without: "no answer"} if without else {}
    target = Target(name, facts=known, unknown=unknown, static_pods=static, power=power, power_error=power_error)
    return HostObservations(name, target)


def windows_host(name: str = "n1", without: str = "", error: str = "", **facts: Any) -> HostObservations:
    """As :func:`host`, a host with Windows; with ``error`` one that does not answer."""
    known = WINDOWS_FACTS | {"machine-id": name} | {key.replace("_", "-"): value for key, value in facts.items()}
    known.pop(without, None)
    unknown = {without: "no answer"} if without else {}
    return HostObservations(name, Target(name, "windows", facts=known, unknown=unknown, power="power"), error)


def observed(
    *hosts: HostObservations, pods: tuple[Pod, ...] = (), nodes: tuple[Node, ...] = (), **more: Any
) -> ClusterObservations:
    made = {each.node: each for each in hosts or (host(),)}
    view = {each.metadata.name: each for each in nodes} or {name: node(name, "10.0.0.1") for name in made}
    given: dict[str, Any] = {
        "experiments": (USE,),
        "lists": {path: [] for path in LISTS},
        "local_identity": OWN,
        "inventory": inventory(),
    } | more
    return ClusterObservations(view=ClusterView("uid", view, pods), hosts=made, **given)


def diagnoses(check: str, observations: ClusterObservations) -> list[Diagnosis]:
    """Diagnoses of a check, which sees only hosts with its systems."""
    return list(CHECKS[check].run(observations.of_systems(CHECKS[check].systems)))


def messages(check: str, observations: ClusterObservations) -> list[tuple[str, str, str]]:
    """Severity, host and message of each diagnosis."""
    return [(str(d.severity), d.host, d.message) for d in diagnoses(check, observations)]

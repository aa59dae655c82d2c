"""The LabSpec of a snapshot, and what a machine has on disk: manifests of static pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from chaos.lab import versions
from chaos.lab.apiserver.admission import PREFIX
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.static_pods import MANIFESTS, is_mirror
from chaos.lab.objects import Object, condition_status, labels_of, name_of, namespace_of, node_of, parse_quantity
from chaos.lab.snapshot.reader import Snapshot, SnapshotError
from chaos.lab.snapshot.restored import control_plane, is_control_plane, set_grace, zone_of
from chaos.lab.snapshot.unmodelled import Simplifier
from chaos.lab.spec import (
    DEFAULT_NAMESPACES,
    LabSpec,
    NodeSpec,
    SpecError,
    Taint,
)

_OLDEST_SYSTEMD, _DEFAULT_SYSTEMD = 251, 252
_OF_KUBELET = ("nodeName", "tolerations", "priority", "preemptionPolicy")  # set when a static pod is read


def lab_spec(snapshot: Snapshot, settings: Mapping[str, Any], simplifier: Simplifier) -> LabSpec:
    """The LabSpec with the snapshot's nodes; ``settings``: the other keys of a LabSpec. Raises SnapshotError."""
    namespaced = {namespace_of(obj) for plural in snapshot.lists for obj in snapshot.objects(plural)}
    names = {name_of(obj) for obj in snapshot.objects("namespaces")}
    recorded = str(snapshot.header.get("kubernetes") or "")
    version = versions.nearest_version(recorded)
    simplifier.note("other versions of Kubernetes", int(not recorded.startswith(version)))
    document = {
        "kubernetes": version,
        **{key: value for key, value in settings.items() if key not in ("nodes", "kubernetes", "controllers")},
        "namespaces": sorted({*DEFAULT_NAMESPACES, *names, *namespaced} - {""}),
    }
    try:
        controllers = control_plane(snapshot.header, settings.get("controllers") or {})
        document |= {"nodes": [], "controllers": msgspec.to_builtins(controllers)}
        spec = msgspec.convert(document, LabSpec)
        hosts = _HostFacts(snapshot)
        spec.nodes = [_node(node, hosts, snapshot, simplifier) for node in snapshot.objects("nodes")]
        spec.check()
    except (SpecError, msgspec.ValidationError, ValueError, TypeError, KeyError) as error:
        raise SnapshotError(f"cannot simulate this cluster: {error}") from error
    return spec


def _node(node: Object, hosts: _HostFacts, snapshot: Snapshot, simplifier: Simplifier) -> NodeSpec:
    name, status = name_of(node), node.get("status") or {}
    info, config = status.get("nodeInfo") or {}, snapshot.configs.get(name)
    if config is None:
        simplifier.note("kubelets without configuration")
    config = config or {}
    is_windows = info.get("operatingSystem") == "windows"
    spec = NodeSpec(
        name=name,
        os="windows" if is_windows else "linux",
        role="control-plane" if is_control_plane(node) and not is_windows else "worker",
        zone=zone_of(node),
        labels=dict(labels_of(node)),
        taints=[msgspec.convert(item, Taint) for item in config.get("registerWithTaints") or []],
        systemd=_systemd(hosts.get(node, "systemd"), simplifier),
        kubelet_service="nssm" if hosts.get(node, "kubeletService") == "nssm" else "service",
        fail_swap_on=config.get("failSwapOn", True) is not False,
        capacity=_quantities(status.get("allocatable") or {}),
    )
    set_grace(spec, config)
    swap = (info.get("swap") or {}).get("capacity")
    if swap and not spec.fail_swap_on and not is_windows:
        spec.swap = str(swap)
    return spec


class _HostFacts:
    """Facts of the hosts that were read, which stand for those with the same OS image and kernel."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._own = snapshot.hosts
        self._of_images: dict[tuple[str, str], Object] = {}
        for node in snapshot.objects("nodes"):
            if found := self._own.get(name_of(node)):
                self._of_images[_image(node)] = found

    def get(self, node: Object, key: str) -> Any:
        """None if neither the host nor one that is like it was read."""
        return {**self._of_images.get(_image(node), {}), **(self._own.get(name_of(node)) or {})}.get(key)


def _systemd(found: Any, simplifier: Simplifier) -> int:
    version = int(found or _DEFAULT_SYSTEMD)
    if version >= _OLDEST_SYSTEMD:
        return version
    simplifier.note("systemd before 251")
    return _DEFAULT_SYSTEMD


def _image(node: Object) -> tuple[str, str]:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("osImage")), str(info.get("kernelVersion"))


def _quantities(amounts: Object) -> dict[str, str]:
    """The quantities that can be parsed."""
    result = {}
    for key, value in amounts.items():
        try:
            parse_quantity(value)
        except ValueError:
            continue
        result[key] = str(value)
    return result


def is_ready_node(node: Object) -> bool:
    """Whether the node was Ready; one without conditions counts as Ready."""
    return condition_status(node, "Ready") in ("True", "")


def write_manifests(cluster: Cluster, snapshot: Snapshot, simplifier: Simplifier) -> None:
    """Write the manifests of static pods, from their mirrors, before the kubelets start."""
    for pod in snapshot.objects("pods"):
        machine = cluster.machines.get(node_of(pod))
        if machine is None or not is_mirror(pod):
            continue
        name = name_of(pod).removesuffix(f"-{machine.name}")
        body: Object = {key: value for key, value in clone(pod["spec"]).items() if key not in _OF_KUBELET}
        simplifier.simplify_pod(body)
        annotations = (pod["metadata"].get("annotations") or {}).items()
        metadata = {
            "name": name,
            "namespace": namespace_of(pod),
            "annotations": {key: value for key, value in annotations if key.startswith(PREFIX)},
            **({"labels": dict(labels_of(pod))} if labels_of(pod) else {}),
        }
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}
        machine.files[f"{MANIFESTS}{name}.yaml"] = msgspec.json.encode(document).decode() + "\n"

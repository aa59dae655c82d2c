"""The Node object of a kubelet: what it registers, and what its status has besides conditions."""

from __future__ import annotations

from chaos.lab.node.kubelet.pod_worker import CAPACITY
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import Object, taints_of

WINDOWS_BUILD = "10.0.20348"  # Windows Server 2022
_SYSTEMS = {
    "linux": {"kernelVersion": "6.1.0-lab", "osImage": "nodefall lab (simulated)"},
    "windows": {"kernelVersion": f"{WINDOWS_BUILD}.2700", "osImage": "Windows Server 2022 Datacenter (simulated)"},
}
_KUBERNETES_PREFIX = "kubernetes.io/"  # Kubernetes' own taints


def static_status(process: Process) -> Object:
    """Capacity, addresses and information about the machine."""
    machine, rules = process.machine, process.rules.node_status
    capacity = {k: v for k, v in (CAPACITY | machine.spec.capacity).items() if k not in rules.omitted_capacity}
    allocatable = {**capacity, **({"pods": str(rules.allocatable_pods)} if rules.allocatable_pods else {})}
    for kind, resources in (("capacity", capacity), ("allocatable", allocatable)):
        if kind in rules.usage_subtracted_from and "cpu" in machine.pressure:
            resources["cpu"] = "0"
    own = {"InternalIP": machine.address, "Hostname": rules.hostname or machine.name}
    info, types = _node_info(process), {"InternalIP": rules.internal_ip_type}
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": [
            *({"type": types.get(type_, type_), "address": own[type_]} for type_ in rules.address_types),
            *({"type": more.type, "address": more.address} for more in machine.spec.more_addresses),
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": machine.kubelet_port}},
        "nodeInfo": info | dict.fromkeys(rules.omitted_info & info.keys(), ""),
    }


def _node_info(process: Process) -> Object:
    machine, spec, rules = process.machine, process.spec, process.rules.node_status
    version, named = spec.git_version, not spec.has_feature("no-kube-proxy-version")
    has_swap = machine.swap and spec.has_feature("swap-reported") and rules.reports_swap
    return {
        "machineID": machine.machine_id,
        "systemUUID": machine.system_uuid,
        "bootID": machine.boot_id,
        **_SYSTEMS[machine.os],
        "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": version,
        "kubeProxyVersion": version if named else "",
        "operatingSystem": machine.os,
        "architecture": "amd64",
        **({"swap": {"capacity": machine.swap}} if has_swap else {}),
        **machine.spec.node_info,
    }


def new_node(process: Process, message: str) -> Object:
    """The Node that a kubelet creates; ``message``: of its condition Ready."""
    machine, spec, rules = process.machine, process.machine.spec, process.rules.node_status
    metadata: Object = {"name": machine.name, "labels": _labels(process)}
    if spec.annotations:
        metadata["annotations"] = dict(spec.annotations)
    ready = {"type": "Ready", "status": "False", "reason": rules.not_ready_reason}
    now = process.sim.timestamp()
    ready |= {"message": message, "lastHeartbeatTime": now, "lastTransitionTime": now}
    status = {"conditions": [ready], **static_status(process)}
    if not rules.registers_capacity:
        del status["capacity"], status["allocatable"]
    if not rules.registers_addresses:
        del status["addresses"]
    return {
        "metadata": metadata,
        "spec": {"taints": _taints(process), "providerID": spec.provider_id or f"lab://{machine.name}"},
        "status": status,
    }


def _labels(process: Process) -> Object:
    machine, spec, rules = process.machine, process.machine.spec, process.rules.node_status
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": machine.os,
        "kubernetes.io/arch": "amd64",
        **({"node.kubernetes.io/windows-build": WINDOWS_BUILD} if machine.os == "windows" else {}),
        **({"topology.kubernetes.io/zone": spec.zone} if spec.zone else {}),
    }
    if spec.role == "control-plane":
        labels["node-role.kubernetes.io/control-plane"] = ""
    added = spec.labels if rules.registers_with_labels else {}
    return labels | {key: value if rules.registers_label_values else "" for key, value in added.items()}


def _taints(process: Process) -> list[Object]:
    spec, rules = process.machine.spec, process.rules.node_status
    taints: list[Object] = [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in (spec.taints if rules.registers_with_taints else ())
    ]
    if rules.registered_taint_effect:
        taints = [{**taint, "effect": rules.registered_taint_effect} for taint in taints]
    if spec.role == "control-plane":
        taints.append({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"})
    return taints


def restore_registration(process: Process) -> None:
    """Give the existing Node the labels and taints that it would be registered with."""

    def change(node: Object) -> None:
        node["metadata"]["labels"] = {**(node["metadata"].get("labels") or {}), **_labels(process)}
        added = _taints(process)
        keys = {taint["key"] for taint in added}
        node["spec"]["taints"] = [*(item for item in taints_of(node) if item["key"] not in keys), *added]

    process.registry.store.patch("nodes", "", process.node, change)


def reset_spec(process: Process, node: Object) -> Object:
    """Undo what others have set in the spec; the Node as it is then."""
    rules = process.rules.node_status
    foreign = [item for item in taints_of(node) if _KUBERNETES_PREFIX not in item["key"]]
    resets_taints = "taints" in rules.resets_spec and foreign
    resets_cordon = "unschedulable" in rules.resets_spec and node["spec"].get("unschedulable")
    if not resets_taints and not resets_cordon:
        return node

    def change(obj: Object) -> None:
        if resets_cordon:
            del obj["spec"]["unschedulable"]
        if resets_taints:
            obj["spec"]["taints"] = [item for item in taints_of(obj) if item not in foreign]

    return process.registry.store.patch("nodes", "", process.node, change) or node

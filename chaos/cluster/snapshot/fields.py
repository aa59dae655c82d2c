"""Allowed fields of a snapshot: of pods, pod templates, the control plane, kubelets and hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chaos.cluster.snapshot.projection import (
    CONDITIONS,
    DROP,
    KEEP,
    NAME,
    NODE_TERM,
    PRESENT,
    RESOURCES,
    SELECTOR,
    TEMPLATE_META,
    TOLERATION,
    Leaf,
    Tree,
    fields,
    kind,
)

_PROBE: Tree = fields(
    KEEP, "initialDelaySeconds periodSeconds timeoutSeconds successThreshold failureThreshold"
) | fields(DROP, "exec httpGet tcpSocket grpc terminationGracePeriodSeconds")
_HOOK: Tree = {"sleep": {"seconds": KEEP}, **fields(PRESENT, "exec httpGet tcpSocket")}
_CONTAINER: Tree = {
    "name": NAME,
    "image": Leaf.IMAGE,
    "resources": RESOURCES,
    "restartPolicy": KEEP,
    "lifecycle": {"preStop": _HOOK, "postStart": PRESENT, "stopSignal": KEEP},
    **dict.fromkeys(("readinessProbe", "livenessProbe", "startupProbe"), _PROBE),
    "ports": fields(KEEP, "containerPort hostPort protocol") | fields(DROP, "name hostIP"),
    **fields(DROP, "args command env envFrom imagePullPolicy resizePolicy restartPolicyRules securityContext stdin"),
    **fields(DROP, "stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts"),
    "workingDir": DROP,
}
_POD_TERM: Tree = {
    **dict.fromkeys(("labelSelector", "namespaceSelector"), SELECTOR),
    "topologyKey": Leaf.KEY,
    "namespaces": Leaf.NAMES,
    **dict.fromkeys(("matchLabelKeys", "mismatchLabelKeys"), Leaf.KEYS),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITY: Tree = {_REQUIRED: _POD_TERM, _PREFERRED: {"weight": KEEP, "podAffinityTerm": _POD_TERM}}
_AFFINITY: Tree = {
    "nodeAffinity": {
        _REQUIRED: {"nodeSelectorTerms": NODE_TERM},
        _PREFERRED: {"weight": KEEP, "preference": NODE_TERM},
    },
    **dict.fromkeys(("podAffinity", "podAntiAffinity"), _POD_AFFINITY),
}
_SPREAD: Tree = {
    "topologyKey": Leaf.KEY,
    "labelSelector": SELECTOR,
    "matchLabelKeys": Leaf.KEYS,
    **fields(KEEP, "maxSkew whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy"),
}
# Sources of volumes that hold a pod on a node, or make it wait. Others, as Secrets and ConfigMaps, leave no trace.
_VOLUME: Tree = {
    "name": NAME,
    "persistentVolumeClaim": {"claimName": NAME, "readOnly": KEEP},
    **fields(PRESENT, "emptyDir ephemeral hostPath"),
    **fields(DROP, "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI fc flexVolume"),
    **fields(DROP, "flocker gcePersistentDisk gitRepo glusterfs image iscsi nfs photonPersistentDisk portworxVolume"),
    **fields(DROP, "projected quobyte rbd scaleIO secret storageos vsphereVolume"),
}
SPEC: Tree = {
    **fields(NAME, "nodeName priorityClassName schedulerName runtimeClassName hostname subdomain"),
    "nodeSelector": Leaf.LABELS,
    "affinity": _AFFINITY,
    "topologySpreadConstraints": _SPREAD,
    "tolerations": TOLERATION,
    **fields(KEEP, "activeDeadlineSeconds dnsPolicy hostNetwork preemptionPolicy priority restartPolicy"),
    "terminationGracePeriodSeconds": KEEP,
    **dict.fromkeys(("containers", "initContainers"), _CONTAINER),
    "volumes": _VOLUME,
    "overhead": Leaf.AMOUNTS,
    "resources": RESOURCES,
    "readinessGates": {"conditionType": Leaf.KEY},
    "schedulingGates": {"name": Leaf.KEY},
    "resourceClaims": PRESENT,
    **fields(DROP, "automountServiceAccountToken dnsConfig enableServiceLinks ephemeralContainers hostAliases hostIPC"),
    **fields(DROP, "hostPID hostUsers hostnameOverride imagePullSecrets os securityContext serviceAccount"),
    **fields(DROP, "schedulingGroup serviceAccountName setHostnameAsFQDN shareProcessNamespace workloadRef"),
}
TEMPLATE: Tree = {"metadata": TEMPLATE_META, "spec": SPEC}
_STATE: Tree = {
    "running": {"startedAt": KEEP},
    "waiting": {"reason": Leaf.WORD, "message": DROP},
    "terminated": {
        "reason": Leaf.WORD,
        **fields(KEEP, "exitCode signal startedAt finishedAt"),
        **fields(DROP, "message containerID"),
    },
}
_CONTAINER_STATUS: Tree = {
    "name": NAME,
    **fields(KEEP, "ready restartCount started"),
    **dict.fromkeys(("state", "lastState"), _STATE),
    **fields(DROP, "allocatedResources allocatedResourcesStatus containerID image imageID resources stopSignal user"),
    "volumeMounts": DROP,
}
_STATUS: Tree = {
    "reason": Leaf.WORD,
    **fields(KEEP, "phase startTime qosClass"),
    "conditions": CONDITIONS,
    **dict.fromkeys(("containerStatuses", "initContainerStatuses"), _CONTAINER_STATUS),
    "nominatedNodeName": NAME,
    **fields(DROP, "allocatedResources ephemeralContainerStatuses extendedResourceClaimStatus hostIP hostIPs message"),
    **fields(DROP, "nodeAllocatableResourceClaimStatuses observedGeneration podIP podIPs resize"),
    **fields(DROP, "resourceClaimStatuses resources"),
}
POD: Tree = kind(SPEC, _STATUS)


_MANAGER = (
    "node-monitor-period node-monitor-grace-period node-eviction-rate secondary-node-eviction-rate "
    "large-cluster-size-threshold unhealthy-zone-threshold terminated-pod-gc-threshold disable-force-detach-on-timeout"
)
_SERVER = "default-not-ready-toleration-seconds default-unreachable-toleration-seconds"
FLAGS = {"kube-controller-manager": frozenset(_MANAGER.split()), "kube-apiserver": frozenset(_SERVER.split())}
_THRESHOLDS: Tree = fields(
    KEEP,
    "memory.available nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree containerfs.available "
    "containerfs.inodesFree pid.available allocatableMemory.available",
)
# k8s.io/kubelet/config/v1beta1/types.go. Everything else is left out, as it names addresses, files and users.
KUBELET: Tree = {
    **fields(KEEP, "shutdownGracePeriod shutdownGracePeriodCriticalPods nodeLeaseDurationSeconds failSwapOn maxPods"),
    **fields(KEEP, "nodeStatusUpdateFrequency nodeStatusReportFrequency runtimeRequestTimeout serializeImagePulls"),
    **fields(KEEP, "maxParallelImagePulls evictionPressureTransitionPeriod evictionMaxPodGracePeriod"),
    "shutdownGracePeriodByPodPriority": fields(KEEP, "priority shutdownGracePeriodSeconds"),
    **dict.fromkeys(("evictionHard", "evictionSoft", "evictionSoftGracePeriod"), _THRESHOLDS),
    "registerWithTaints": {"key": Leaf.KEY, "value": Leaf.NAME, "effect": KEEP},
    "crashLoopBackOff": fields(KEEP, "maxContainerRestartPeriod"),
}


def visible_flags(pod: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Component and known flags, in camel case, of a pod of the control plane; None for other pods."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    component = (metadata.get("labels") or {}).get("component")
    if metadata.get("namespace") != "kube-system" or component not in FLAGS:
        return None
    found: dict[str, Any] = {}
    for container in spec.get("containers") or []:
        for argument in [*(container.get("command") or []), *(container.get("args") or [])]:
            name, sign, value = str(argument).removeprefix("--").partition("=")
            if sign and name in FLAGS[component]:
                found[_camel(name)] = _value(value)
    return component, found


def _camel(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(word.capitalize() for word in others)


def _value(text: str) -> Any:
    """A boolean, a number, or the text of a duration."""
    if text in ("true", "false"):
        return text == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def kubelet_service(command_line: Any) -> str:
    """``nssm`` or ``service``: whether Windows notifies the kubelet itself. Nothing else is stored."""
    return "nssm" if "nssm" in str(command_line).lower() else "service"


# By system: key in the snapshot, fact of the host, and what of its value is stored.
FACTS: Mapping[str, tuple[str, str, Callable[[Any], Any]]] = {
    "linux": ("systemd", "systemd-version", int),
    "windows": ("kubeletService", "kubelet-binary", kubelet_service),
}

"""Allowed fields of pods and pod templates: what decides where a pod runs, when it is ready and how it ends.

No environment, arguments, commands, probes' requests, mounts, Secrets or ConfigMaps. k8s.io/api/core/v1/types.go.
"""

from __future__ import annotations

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

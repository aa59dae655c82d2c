"""The kinds in a snapshot: the kinds that the lab models, with their allowed fields and API paths."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.cluster.snapshot.fields import POD, TEMPLATE
from chaos.cluster.snapshot.projection import (
    CONDITIONS,
    DROP,
    HEAD,
    KEEP,
    META,
    NAME,
    NODE_TERM,
    PRESENT,
    REFERENCE,
    RESOURCES,
    SELECTOR,
    TEMPLATE_META,
    Leaf,
    Tree,
    fields,
    kind,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects: plural, API prefix, allowed fields."""

    plural: str
    prefix: str
    tree: Tree

    @property
    def path(self) -> str:
        """Path of the collection in all namespaces."""
        return f"{self.prefix}/{self.plural}"


_CORE, _APPS, _BATCH, _STORAGE = "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/storage.k8s.io/v1"
_NODE: Tree = kind(
    {
        "taints": {"key": Leaf.KEY, "value": NAME, **fields(KEEP, "effect timeAdded")},
        "unschedulable": KEEP,
        **fields(DROP, "configSource externalID podCIDR podCIDRs providerID"),
    },
    {
        **dict.fromkeys(("capacity", "allocatable"), Leaf.AMOUNTS),
        "conditions": CONDITIONS,
        "nodeInfo": fields(KEEP, "operatingSystem architecture")
        | fields(Leaf.SYSTEM, "kubeletVersion kernelVersion osImage containerRuntimeVersion")
        | {"swap": {"capacity": KEEP}, **fields(DROP, "bootID kubeProxyVersion machineID systemUUID")},
        **fields(DROP, "addresses config daemonEndpoints declaredFeatures features images phase runtimeHandlers"),
        **fields(DROP, "volumesAttached volumesInUse"),
    },
)
_COUNTS = (
    "observedGeneration replicas readyReplicas updatedReplicas availableReplicas unavailableReplicas "
    "terminatingReplicas fullyLabeledReplicas currentReplicas currentNumberScheduled desiredNumberScheduled "
    "numberMisscheduled numberReady updatedNumberScheduled numberAvailable numberUnavailable collisionCount"
)
_ROLLING: Tree = {"type": KEEP, "rollingUpdate": fields(KEEP, "maxUnavailable maxSurge partition")}
_CLAIM_SPEC: Tree = {
    "accessModes": KEEP,
    "resources": RESOURCES,
    **fields(NAME, "storageClassName volumeName volumeAttributesClassName"),
    "volumeMode": KEEP,
    "selector": SELECTOR,
    **fields(DROP, "dataSource dataSourceRef"),
}
_WORKLOAD: Tree = kind(
    {
        **fields(KEEP, "replicas minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds"),
        "podManagementPolicy": KEEP,
        "serviceName": NAME,
        "selector": SELECTOR,
        "template": TEMPLATE,
        **dict.fromkeys(("strategy", "updateStrategy"), _ROLLING),
        "volumeClaimTemplates": {"metadata": TEMPLATE_META | {"name": NAME}, "spec": _CLAIM_SPEC}
        | fields(DROP, "apiVersion kind status"),
        "persistentVolumeClaimRetentionPolicy": fields(KEEP, "whenDeleted whenScaled"),
        "ordinals": {"start": KEEP},
    },
    {
        **fields(KEEP, _COUNTS),
        "conditions": CONDITIONS | {"lastUpdateTime": KEEP},
        **fields(NAME, "currentRevision updateRevision"),
    },
)
_FAILURE_RULE: Tree = {
    "action": KEEP,
    "onExitCodes": {"containerName": NAME, "operator": KEEP, "values": KEEP},
    "onPodConditions": {"type": Leaf.WORD, "status": KEEP},
}
_JOB_SPEC: Tree = {
    **fields(KEEP, "parallelism completions backoffLimit backoffLimitPerIndex maxFailedIndexes completionMode suspend"),
    **fields(KEEP, "activeDeadlineSeconds ttlSecondsAfterFinished podReplacementPolicy manualSelector"),
    "podFailurePolicy": {"rules": _FAILURE_RULE},
    "successPolicy": PRESENT,
    "managedBy": Leaf.KEY,
    "selector": SELECTOR,
    "template": TEMPLATE,
}
_JOB: Tree = kind(
    _JOB_SPEC,
    {
        **fields(KEEP, "active succeeded failed ready terminating startTime completionTime completedIndexes"),
        "failedIndexes": KEEP,
        "conditions": CONDITIONS,
        "uncountedTerminatedPods": fields(Leaf.NAMES, "succeeded failed"),
    },
)
_CRON_JOB: Tree = kind(
    {
        **fields(KEEP, "schedule timeZone suspend concurrencyPolicy startingDeadlineSeconds"),
        **fields(KEEP, "successfulJobsHistoryLimit failedJobsHistoryLimit"),
        "jobTemplate": {"metadata": DROP, "spec": _JOB_SPEC},
    }
)
_BUDGET: Tree = kind(
    {**fields(KEEP, "minAvailable maxUnavailable unhealthyPodEvictionPolicy"), "selector": SELECTOR},
    {
        **fields(KEEP, "disruptionsAllowed currentHealthy desiredHealthy expectedPods observedGeneration"),
        "conditions": CONDITIONS,
        "disruptedPods": DROP,
    },
)
_SERVICE: Tree = kind(
    {
        "selector": Leaf.LABELS,
        "ports": {**fields(KEEP, "port protocol"), **fields(NAME, "name targetPort"), **fields(DROP, "nodePort")}
        | fields(DROP, "appProtocol"),
        "clusterIP": Leaf.CLUSTER_IP,
        **fields(KEEP, "type publishNotReadyAddresses externalTrafficPolicy internalTrafficPolicy sessionAffinity"),
        "trafficDistribution": KEEP,
        **fields(DROP, "allocateLoadBalancerNodePorts clusterIPs externalIPs externalName healthCheckNodePort"),
        **fields(DROP, "ipFamilies ipFamilyPolicy loadBalancerClass loadBalancerIP loadBalancerSourceRanges"),
        "sessionAffinityConfig": DROP,
    }
)
_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker gcePersistentDisk glusterfs "
    "hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)
_CSI_SECRETS = (
    "controllerExpandSecretRef controllerPublishSecretRef fsType nodeExpandSecretRef nodePublishSecretRef "
    "nodeStageSecretRef readOnly volumeAttributes"
)
_VOLUME: Tree = kind(
    {
        "capacity": Leaf.AMOUNTS,
        **fields(KEEP, "accessModes persistentVolumeReclaimPolicy volumeMode"),
        **fields(NAME, "storageClassName volumeAttributesClassName"),
        "claimRef": REFERENCE,
        "csi": fields(NAME, "driver volumeHandle") | fields(DROP, _CSI_SECRETS),
        "nodeAffinity": {"required": {"nodeSelectorTerms": NODE_TERM}},
        **fields(PRESENT, _SOURCES),
        "mountOptions": DROP,
    },
    {"phase": KEEP, **fields(DROP, "lastPhaseTransitionTime message reason")},
)
_CLAIM: Tree = kind(
    _CLAIM_SPEC,
    {
        **fields(KEEP, "phase accessModes"),
        "capacity": Leaf.AMOUNTS,
        **fields(DROP, "allocatedResourceStatuses allocatedResources conditions currentVolumeAttributesClassName"),
        "modifyVolumeStatus": DROP,
    },
)
_ATTACHMENT: Tree = kind(
    {**fields(NAME, "attacher nodeName"), "source": {"persistentVolumeName": NAME, "inlineVolumeSpec": PRESENT}},
    {"attached": KEEP, **fields(DROP, "attachError attachmentMetadata detachError")},
)
_STORAGE_CLASS: Tree = HEAD | {
    "provisioner": NAME,
    **fields(KEEP, "reclaimPolicy volumeBindingMode allowVolumeExpansion"),
    "allowedTopologies": {"matchLabelExpressions": {"key": Leaf.KEY, "values": Leaf.VALUES}},
    **fields(DROP, "mountOptions parameters"),
}
_DRIVER: Tree = kind(
    fields(KEEP, "attachRequired podInfoOnMount storageCapacity volumeLifecycleModes requiresRepublish fsGroupPolicy")
    | fields(DROP, "nodeAllocatableUpdatePeriodSeconds preventPodSchedulingIfMissing seLinuxMount")
    | fields(DROP, "serviceAccountTokenInSecrets tokenRequests")
)
_PRIORITY: Tree = HEAD | fields(KEEP, "value globalDefault preemptionPolicy") | {"description": DROP}
_REVISION: Tree = {"metadata": META, "revision": KEEP, **fields(DROP, "apiVersion kind data")}
_NAMESPACE: Tree = kind({"finalizers": DROP}, {"phase": KEEP, "conditions": DROP})

# In the order in which the lab restores them: what is referred to before what refers to it.
KINDS: dict[str, Kind] = {
    each.plural: each
    for each in (
        Kind("namespaces", _CORE, _NAMESPACE),
        Kind("nodes", _CORE, _NODE),
        Kind("priorityclasses", "/apis/scheduling.k8s.io/v1", _PRIORITY),
        Kind("storageclasses", _STORAGE, _STORAGE_CLASS),
        Kind("csidrivers", _STORAGE, _DRIVER),
        Kind("persistentvolumes", _CORE, _VOLUME),
        Kind("persistentvolumeclaims", _CORE, _CLAIM),
        Kind("volumeattachments", _STORAGE, _ATTACHMENT),
        Kind("services", _CORE, _SERVICE),
        Kind("poddisruptionbudgets", "/apis/policy/v1", _BUDGET),
        *(Kind(plural, _APPS, _WORKLOAD) for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")),
        Kind("controllerrevisions", _APPS, _REVISION),
        Kind("jobs", _BATCH, _JOB),
        Kind("cronjobs", _BATCH, _CRON_JOB),
        Kind("pods", _CORE, POD),
    )
}
EVENTS = "/api/v1/events"
_AUTOSCALER: Tree = kind(
    {
        "scaleTargetRef": {"name": NAME, **fields(Leaf.KIND, "kind apiVersion")},
        **fields(KEEP, "minReplicas maxReplicas"),
        **fields(DROP, "metrics behavior"),
    },
    {
        **fields(KEEP, "currentReplicas desiredReplicas observedGeneration lastScaleTime"),
        "conditions": CONDITIONS,
        **fields(DROP, "currentMetrics"),
    },
)
_WEBHOOK: Tree = {
    "name": Leaf.KEY,
    **fields(KEEP, "failurePolicy timeoutSeconds"),
    "clientConfig": {
        "service": fields(NAME, "name namespace") | fields(DROP, "path port"),
        **fields(DROP, "url caBundle"),
    },
    **fields(DROP, "admissionReviewVersions matchConditions matchPolicy namespaceSelector objectSelector"),
    **fields(DROP, "reinvocationPolicy rules sideEffects"),
}
_WEBHOOKS: Tree = HEAD | {"webhooks": _WEBHOOK}
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """What the lab does not model: its name, and what that means. ``tree``: fields that a snapshot has nevertheless."""

    what: str
    effect: str
    tree: Tree | None = None


# A snapshot says how many there are, by path of the collection.
UNMODELLED: dict[str, Unmodelled] = {
    "/apis/autoscaling/v2/horizontalpodautoscalers": Unmodelled(
        "HorizontalPodAutoscalers", "replicas stay as they are", _AUTOSCALER
    ),
    f"{_ADMISSION}/mutatingwebhookconfigurations": Unmodelled(
        "mutating webhooks", "new pods are as in their templates", _WEBHOOKS
    ),
    f"{_ADMISSION}/validatingwebhookconfigurations": Unmodelled(
        "validating webhooks", "nothing is refused by them", _WEBHOOKS
    ),
    f"{_ADMISSION}/validatingadmissionpolicies": Unmodelled(
        "validating admission policies", "nothing is refused by them"
    ),
    f"{_CORE}/resourcequotas": Unmodelled("ResourceQuotas", "no pod is refused by them"),
    f"{_CORE}/limitranges": Unmodelled("LimitRanges", "new pods are as in their templates"),
}

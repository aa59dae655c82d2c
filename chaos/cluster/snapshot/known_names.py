"""Names of Kubernetes that an anonymized snapshot may show."""

from __future__ import annotations

# In front of kubernetes.io, in keys.
DOMAINS = frozenset(
    {
        *("", "app", "apps", "batch", "beta", "csi.volume", "failure-domain.beta", "node", "node-restriction"),
        *("node-role", "topology"),
    }
)
_NODE = (
    "not-ready unreachable unschedulable network-unavailable memory-pressure disk-pressure pid-pressure "
    "out-of-service instance-type exclude-from-external-load-balancers windows-build"
)
_PLACES = tuple(
    f"{where}.kubernetes.io/{area}" for where in ("topology", "failure-domain.beta") for area in ("zone", "region")
)
KEYS = frozenset(
    {
        *("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/metadata.name"),
        *("beta.kubernetes.io/os", "beta.kubernetes.io/arch", "node.cloudprovider.kubernetes.io/uninitialized"),
        *_PLACES,
        *(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "worker")),
        *(f"node.kubernetes.io/{name}" for name in _NODE.split()),
        *("pod-template-hash", "controller-revision-hash", "pod-template-generation"),
        *("metadata.name", "metadata.namespace"),
        *("apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name", "job-name", "controller-uid"),
        *(f"batch.kubernetes.io/{name}" for name in ("job-name", "controller-uid", "job-tracking")),
        *("foregroundDeletion", "orphan", "kubernetes", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"),
        *("cpu", "memory", "ephemeral-storage", "pods", "storage"),
    }
)
# API versions and kinds of owners, and what a measured image is called.
TYPES = frozenset(
    {
        *("v1", "apps/v1", "batch/v1", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"),
        *("Node", "Pod", "PersistentVolumeClaim", "Image"),
    }
)
# Names of objects that every cluster has.
NAMES = frozenset(
    {
        *("default", "kube-system", "kube-public", "kube-node-lease", "kubernetes"),
        *("system-node-critical", "system-cluster-critical", "kubernetes.io/no-provisioner"),
    }
)
_API = (
    "admissionregistration apiextensions apiregistration authentication authorization certificates coordination "
    "discovery events flowcontrol.apiserver internal.apiserver networking node rbac.authorization resource scheduling "
    "storage storagemigration metrics custom.metrics external.metrics"
)
# API groups with a dot that kube-apiserver serves, and those of metrics, which have no operators.
API_GROUPS = frozenset(f"{name}.k8s.io" for name in _API.split())
# Types and reasons of conditions, and reasons of containers and pods: k8s.io/api, pkg/kubelet, pkg/controller.
_WORDS = """
Ready MemoryPressure DiskPressure PIDPressure NetworkUnavailable KubeletReady KubeletNotReady
KubeletHasSufficientMemory KubeletHasInsufficientMemory KubeletHasNoDiskPressure KubeletHasDiskPressure
KubeletHasSufficientPID KubeletHasInsufficientPID NodeStatusUnknown NodeStatusNeverUpdated RouteCreated
NoRouteCreated PodScheduled Initialized ContainersReady PodReadyToStartContainers DisruptionTarget
PodResizePending PodResizeInProgress AllContainersRestarting Deferred Infeasible PodCompleted PodFailed
ContainersNotReady ContainersNotInitialized ReadinessGatesNotReady UnknownContainerStatuses Unschedulable
SchedulingGated SchedulerError WaitForPodScheduling PreemptionByScheduler DeletionByTaintManager
EvictionByEvictionAPI DeletionByPodGC TerminationByKubelet Available Progressing ReplicaFailure
MinimumReplicasAvailable MinimumReplicasUnavailable NewReplicaSetAvailable NewReplicaSetCreated
NewReplicaSetReason FoundNewReplicaSet ReplicaSetUpdated ReplicaSetCreateError ProgressDeadlineExceeded
DeploymentPaused DeploymentResumed FailedCreate FailedDelete Complete Failed Suspended SuccessCriteriaMet
FailureTarget BackoffLimitExceeded DeadlineExceeded PodFailurePolicy MaxFailedIndexesExceeded FailedIndexes
SuccessPolicy CompletionsReached JobSuspended JobResumed DisruptionAllowed SufficientPods InsufficientPods
SyncFailed ContainerCreating PodInitializing CrashLoopBackOff ErrImagePull ImagePullBackOff
ErrImageNeverPull ImageInspectError RegistryUnavailable SignatureValidationFailed InvalidImageName
CreateContainerConfigError CreateContainerError CreatePodSandboxError RunContainerError PreCreateHookError
PreStartHookError PostStartHookError KillContainerError ContainerStatusUnknown Completed Error OOMKilled
StartError ContainerCannotRun NodeLost NodeShutdown Shutdown Terminated Evicted NodeAffinity OutOfcpu
OutOfmemory OutOfpods Preempting UnexpectedAdmissionError TopologyAffinityError
"""
WORDS = frozenset(_WORDS.split())

"""Anonymized values: a keyed hash of each part of a name, so that names that are made of others stay so.

``db``, ``db-0`` and ``data-db-0`` become ``k3f1``, ``k3f1-0`` and ``p09a-k3f1-0``. The key is random, and in no file.
Names of Kubernetes are shown.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from typing import Any

from chaos.cluster.snapshot.projection import OMIT, Convert, Leaf, allowed_annotations, plain_conversions

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
_LETTERS, _ALPHABET = "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz0123456789"
_PARTS = re.compile(r"([-._:/@ ]+)")
_ORDINAL = re.compile(r"[0-9]{1,3}")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PLAIN_TEXT = frozenset({"", "true", "false", "linux", "windows", "amd64", "arm64", "default-scheduler", "None"})
# Words of Kubernetes, times, quantities, durations, percentages, schedules: what KEEP has.
_HARMLESS = re.compile(
    r"[A-Z][A-Za-z]{0,63}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}(Z|[+-][0-9:]{5})"
    r"|[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+|[numkMGTPE]i?|Ki|%|h|s|ms)?|[0-9*/, -]+"
)
_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}")


class Anonymizer:
    """Consistent replacements: equal texts get equal replacements, different texts different ones. ``key``: random
    bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._parts: dict[str, str] = {}
        self._used: set[str] = set()
        self._texts: dict[str, str] = {}

    def text(self, value: str) -> str:
        """A name or the value of a label."""
        if value in NAMES or value in _PLAIN_TEXT:
            return value
        if (known := self._texts.get(value)) is None:
            known = self._texts[value] = self._replace(value)
        return known

    def key(self, value: str) -> str:
        """The key of a label, an annotation, a taint, a finalizer or a resource. Keys of Kubernetes do not change."""
        if value in KEYS or (value.startswith("hugepages-") and value[10:].isalnum()):
            return value
        prefix, slash, name = value.rpartition("/")
        domain, dot, _ = prefix.rpartition("kubernetes.io")
        shown = prefix if dot and domain.rstrip(".") in DOMAINS else self.text(prefix)
        return f"{shown}{slash}{self.text(name)}"

    def conversions(self) -> dict[Leaf, Convert]:
        """Conversions of leaves."""
        plain, text, key = plain_conversions(), self._on_text(self.text), self._on_text(self.key)
        return plain | {
            Leaf.NAME: text,
            Leaf.UID: text,
            Leaf.KEY: key,
            Leaf.NAMES: _each(text, plain[Leaf.NAMES]),
            Leaf.VALUES: _each(text, plain[Leaf.VALUES]),
            Leaf.KEYS: _each(key, plain[Leaf.KEYS]),
            Leaf.FINALIZERS: _each(key, plain[Leaf.FINALIZERS]),
            Leaf.IMAGE: self._on_text(self._image),
            Leaf.KIND: self._on_text(lambda value: value if value in TYPES else self.text(value)),
            Leaf.KEEP: self._checked,
            Leaf.WORD: self._on_text(lambda value: value if value in WORDS else self.text(value)),
            Leaf.LABELS: lambda value: _map(plain[Leaf.LABELS](value), key, text),
            Leaf.AMOUNTS: lambda value: _map(plain[Leaf.AMOUNTS](value), key, self._checked),
            Leaf.ANNOTATIONS: lambda value: _map(allowed_annotations(value), str, self._checked) or OMIT,
            Leaf.SYSTEM: self._on_text(_version),
        }

    def _on_text(self, replace: Convert) -> Convert:
        return lambda value: replace(value) if isinstance(value, str) else value if isinstance(value, int) else OMIT

    def _checked(self, value: Any) -> Any:
        """Numbers, and texts that Kubernetes has made; others are hashed."""
        if isinstance(value, list):
            return [self._checked(item) for item in value if isinstance(item, (str, int, float, bool))]
        if not isinstance(value, str):
            return value if isinstance(value, (int, float)) else OMIT
        return value if _HARMLESS.fullmatch(value) or value in _PLAIN_TEXT else self.text(value)

    def _image(self, value: str) -> str:
        return f"image-{self._digest(value, 12)}"

    def _replace(self, value: str) -> str:
        if _UID.fullmatch(value):
            return str(uuid.UUID(bytes=self._mac(value)[:16], version=4))
        parts = _PARTS.split(value)
        last = len(parts) - 1
        shown = "".join(
            part if index % 2 or _is_ordinal(parts, index, last) else self._part(part)
            for index, part in enumerate(parts)
        )
        return shown if len(shown) <= _limit(value) else self._part(value, 20)

    def _part(self, part: str, length: int = 0) -> str:
        """The replacement for a part, with its length but at least 4 characters. It is unique."""
        if not part:
            return part
        if part not in self._parts:
            count = 0
            while (shown := self._digest(f"{count}/{part}", length or max(4, len(part)))) in self._used:
                count += 1
            self._parts[part] = shown
            self._used.add(shown)
        return self._parts[part]

    def _digest(self, text: str, length: int) -> str:
        """A letter, then letters and digits."""
        number, shown = int.from_bytes(self._mac(text), "big"), ""
        while len(shown) < min(length, 40):
            alphabet = _ALPHABET if shown else _LETTERS
            number, index = divmod(number, len(alphabet))
            shown += alphabet[index]
        return shown

    def _mac(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)


def _is_ordinal(parts: list[str], index: int, last: int) -> bool:
    """Whether a part is a number behind a name, as in ``db-0``; numbers behind numbers may be an address."""
    before = parts[index - 2] if index >= 2 else ""
    return index == last and bool(_ORDINAL.fullmatch(parts[index])) and (last == 0 or not before.isdigit())


def _limit(value: str) -> int:
    """Greatest length of a replacement: values of labels and some names have at most 63 characters, others 253."""
    return 63 if len(value) <= 63 else 253


def _version(value: str) -> str:
    """The first number of a version, and nothing of who has built it."""
    found = _VERSION.search(value)
    return found[0] if found else ""


def _each(convert: Convert, check: Convert) -> Convert:
    def each(value: Any) -> Any:
        items = check(value)
        return [convert(item) for item in items] if items is not OMIT else OMIT

    return each


def _map(value: Any, keys: Convert, values: Convert) -> Any:
    return {keys(key): values(item) for key, item in value.items()} if value is not OMIT else OMIT

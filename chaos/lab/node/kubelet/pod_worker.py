"""State of one pod in the kubelet, its bucket in a node's shutdown, and its volumes.

Volumes of the kubelet's pods: mounted, in use, unmounted. The CSI driver must be registered with the kubelet first.
Mounts outlive the process and a loss of power: a new process reconstructs them from the pods' directories
(pkg/kubelet/volumemanager/reconciler/reconstruct.go). Until the driver's node plugin has registered, volumes are
neither mounted nor unmounted (pkg/volume/csi/csi_client.go: not found in the list of registered CSI drivers), and the
object of a pod is not deleted before its volumes are unmounted (KL SyncTerminatedPod, SM canBeDeleted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from chaos.lab.apiserver.volumes import mounted_names
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import Object, uid_of
from chaos.lab.rules import NodeShutdownRules
from chaos.lab.spec import NodeSpec, parse_duration

_UNMOUNT = (0.1, 0.3)  # seconds, from the end of the containers; of volumes that need no driver
_UNPUBLISH = (0.2, 0.5)  # NodeUnpublishVolume and NodeUnstageVolume, each after a loop of the reconciler (100 ms)
_AFTER_BOOT = (3.0, 7.0)  # from the kubelet's start to the registration: the plugin's pod restarts (recordings 31, 33)
_AFTER_RESTART = (0.2, 1.2)  # the plugin still runs: pluginmanager's reconciler, loopSleepDuration 1 s


class VolumeMounts:
    """The volumes on one machine, for one process."""

    def __init__(self, process: Process) -> None:
        self._process, self._store, self._runtime = process, process.registry.store, process.machine.runtime
        self._reconstructed = set(self._runtime.mounts)
        self._registration = _AFTER_BOOT if self._runtime.plugins_lost else _AFTER_RESTART
        self._runtime.plugins_lost = False
        self._waiters: dict[str, list[Callable[[], object]]] = {}
        self._registered_at: float | None = None

    def mount(self, pod: Object) -> None:
        """Begin to mount the pod's volumes: they are in use from now on."""
        self._reconstructed.discard(uid_of(pod))
        self._runtime.mounts[uid_of(pod)] = mounted_names(self._store, pod)

    def keep(self, uid: str) -> None:
        """Adopt the volumes of a pod whose containers run on."""
        self._reconstructed.discard(uid)

    def in_use(self, node: Object) -> list[str]:
        """Names for volumesInUse: of mounts that another process made only if ``node`` has the volume attached.

        reconstruct.go updateReconstructedFromNodeStatus makes those not attachable that the Node does not list, and
        volume_manager.go GetVolumesInUse leaves these out.
        """
        attached = {item["name"] for item in node["status"].get("volumesAttached") or []}
        return sorted(
            {
                name
                for uid, names in self._runtime.mounts.items()
                for name in names
                if uid not in self._reconstructed or name in attached
            }
        )

    def wait_for_driver(self) -> float:
        """Seconds until the CSI driver has registered."""
        if self._registered_at is None:
            self._registered_at = self._process.start_time + self._process.sim.rng.uniform(*self._registration)
        return max(0.0, self._registered_at - self._process.sim.now)

    def release(self, uid: str, done: Callable[[], object] = lambda: None) -> None:
        """Unmount the volumes of a pod whose containers have ended, then call ``done``."""
        is_pending = uid in self._waiters
        self._waiters.setdefault(uid, []).append(done)
        if not is_pending:
            has_claims = uid in self._runtime.mounts
            wait, (low, high) = (self.wait_for_driver(), _UNPUBLISH) if has_claims else (0.0, _UNMOUNT)
            self._process.after_jitter(wait + low, wait + high, self._unmount, uid)

    def when_released(self, uid: str, call: Callable[[], object]) -> None:
        """Call ``call`` once no volume of the ended pod is mounted."""
        if uid in self._runtime.mounts:
            self.release(uid, call)
        else:
            call()

    def _unmount(self, uid: str) -> None:
        self._runtime.mounts.pop(uid, None)
        for waiter in self._waiters.pop(uid):
            waiter()


State = Literal["starting", "running", "stopping", "ended"]
Limits = tuple[float, float]  # the first and the longest delay
ResourceRequests = dict[str, int]  # by resource: milli-CPUs, bytes, pods

CRITICAL = 2_000_000_000  # scheduling.SystemCriticalPriority


@dataclass(slots=True)
class Backoff:
    """Back-off between restarts of a pod's containers. client-go flowcontrol.Backoff; in memory only."""

    delay: float = 0.0
    last_start: float = 0.0

    def remaining(self, ended: float, now: float, limits: Limits) -> float:
        """Seconds until containers that exited at ``ended`` may be restarted."""
        return 0.0 if self._is_expired(ended, limits) else max(0.0, ended + self.delay - now)

    def advance(self, ended: float, now: float, limits: Limits) -> None:
        """Record a restart: the next delay doubles, unless the containers had run for twice the longest."""
        self.delay = limits[0] if self._is_expired(ended, limits) else min(2 * self.delay, limits[1])
        self.last_start = now

    def _is_expired(self, ended: float, limits: Limits) -> bool:
        return not self.delay or ended - self.last_start > 2 * limits[1]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the kubelet ends a pod. ``disruption``: message of DisruptionTarget; empty: there is none. Facts 9.

    Reason and message are those of a pod that fails: one whose containers exit 0 is Succeeded, without either.
    """

    reason: str
    message: str
    disruption: str


@dataclass(slots=True, eq=False)
class Worker:
    """One pod on this node. ``is_unmounted``: its volumes are unmounted. ``cause``: set if the kubelet ends the pod.

    ``crash_backoff``: delay for which its containers wait in CrashLoopBackOff. ``is_removing``: its object is being
    deleted. ``pod``: the object that this process has seen last; for a static pod that of its file, whose mirror is in
    the API.
    """

    pod: Object
    uid: str
    namespace: str
    name: str
    priority: int
    termination_grace: int | None
    state: State = "starting"
    ip: str = ""
    has_sandbox: bool = False
    is_unmounted: bool = False
    is_static: bool = False
    is_removing: bool = False
    cause: Cause | None = None
    crash_backoff: float = 0.0
    requests: ResourceRequests = field(default_factory=dict)  # empty until first use
    backoff: Backoff = field(default_factory=Backoff)
    last_written_pod: Object | None = None  # the object after the last status write, and the inputs of that status
    last_written_inputs: tuple[object, ...] = ()
    waiters: list[Callable[[Worker], object]] = field(default_factory=list)

    def call_waiters(self) -> None:
        """Call each of ``waiters`` once."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter(self)

    def mark_unmounted(self) -> None:
        """Record that no volume of the pod is mounted."""
        self.is_unmounted = True

    @property
    def is_critical(self) -> bool:
        """Whether the pod is static or has a system priority. pkg/kubelet/types IsCriticalPod."""
        return self.is_static or self.priority >= CRITICAL


_Pod = TypeVar("_Pod")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Grace period in whole seconds for pods with at least this priority."""

    priority: int
    seconds: int


def buckets_of(node: NodeSpec, rules: NodeShutdownRules) -> list[Bucket]:
    """Effective buckets, the lowest priority first; empty if the feature is off. NSM migrateConfig."""
    found = sorted(_configured(node, rules), key=lambda bucket: bucket.priority)
    return [Bucket(each.priority, rules.group_seconds.get(str(each.priority), each.seconds)) for each in found]


def has_gate(node: NodeSpec, rules: NodeShutdownRules, gate: str) -> bool:
    """Whether a feature gate is on."""
    default = gate not in rules.feature_gates_off
    return node.feature_gates.get(gate, default) if rules.heeds_feature_gates else default


def _configured(node: NodeSpec, rules: NodeShutdownRules) -> list[Bucket]:
    listed = [
        (each.priority, each.shutdown_grace_period_seconds) for each in node.shutdown_grace_period_by_pod_priority
    ]
    by_priority = rules.heeds_pod_priority and has_gate(node, rules, "GracefulNodeShutdownBasedOnPodPriority")
    if by_priority and (found := listed or rules.default_by_pod_priority):
        return [Bucket(priority, seconds) for priority, seconds in found]
    total = int(parse_duration(node.shutdown_grace_period))
    critical = int(parse_duration(node.shutdown_grace_period_critical_pods))
    if not total and not critical and not listed:
        total, critical = rules.default_grace_periods
    if total == 0 or critical > total:
        return []
    return [Bucket(0, total - critical), Bucket(CRITICAL, critical)]


def group_by_priority(
    buckets: list[Bucket], pods: Iterable[tuple[int, _Pod]], rules: NodeShutdownRules
) -> list[list[_Pod]]:
    """Pods by bucket: that with the highest priority up to the pod's, else the lowest. ``pods``: (priority, pod)."""
    groups: list[list[_Pod]] = [[] for _ in buckets]
    for priority, pod in pods:
        groups[_index_of(buckets, priority, rules)].append(pod)
    return groups


def _index_of(buckets: list[Bucket], priority: int, rules: NodeShutdownRules) -> int:
    least = priority + (0 if rules.range_includes_start else -1)
    below = [index for index, bucket in enumerate(buckets) if bucket.priority <= least]
    index = below[-1] if below else 0
    is_gap = below and buckets[index].priority != priority and index + 1 < len(buckets)
    return index + 1 if is_gap and priority and not rules.gap_belongs_below else index


def grace_override(bucket_seconds: int, termination_grace: int | None, rules: NodeShutdownRules) -> int:
    """Grace period of a pod: the lesser of both, at least 1 s. NSM killPods, PW."""
    return max(lesser_grace(bucket_seconds, termination_grace, rules), rules.minimum_grace_period_seconds)


def lesser_grace(bucket_seconds: int, termination_grace: int | None, rules: NodeShutdownRules) -> int:
    """Grace period of a pod as the kubelet logs it, before the minimum of 1 s."""
    if termination_grace is None:
        return bucket_seconds
    return rules.shorter_grace_period(bucket_seconds, termination_grace)


CAPACITY = {"cpu": "2", "memory": "8192Mi", "ephemeral-storage": "40Gi", "pods": "110"}

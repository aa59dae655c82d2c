"""Graceful node shutdown: buckets by priority, and the manager that handles logind's signals. Facts 1, 2 and 4."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from chaos.lab.node.kubelet.metrics import STATE_FILE, read_state_file, state_file
from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_worker import CRITICAL, Worker
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.logind import Inhibitor, LogindError
from chaos.lab.spec import NodeSpec, parse_duration

_DROP_IN = "/etc/systemd/logind.conf.d/99-kubelet.conf"
_POLL = 0.3  # WaitForAllPodsUnmount
_RELOAD = (0.6, 1.0)  # an earlier scrape still has 0 and 0 (facts 18)
_RECONNECT = 1.0  # dbusReconnectPeriod
_LOST_IN_TRIES = 0.8  # "in most tries": probability for inhibitorLostAfterCancel=seeded

_MANAGER, _PODS = "nodeshutdown_manager_linux", "nodeshutdown_manager"  # source files in log entries

_Pod = TypeVar("_Pod")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Grace period in whole seconds for pods with at least this priority."""

    priority: int
    seconds: int


def buckets_of(node: NodeSpec) -> list[Bucket]:
    """Effective buckets, the lowest priority first; empty if the feature is off. NSM migrateConfig."""
    if node.shutdown_grace_period_by_pod_priority:
        unsorted = [
            Bucket(item.priority, item.shutdown_grace_period_seconds)
            for item in node.shutdown_grace_period_by_pod_priority
        ]
        return sorted(unsorted, key=lambda bucket: bucket.priority)
    total = int(parse_duration(node.shutdown_grace_period))
    critical = int(parse_duration(node.shutdown_grace_period_critical_pods))
    if total == 0 or critical > total:
        return []
    return [Bucket(0, total - critical), Bucket(CRITICAL, critical)]


def group_by_priority(buckets: list[Bucket], pods: Iterable[tuple[int, _Pod]]) -> list[list[_Pod]]:
    """Pods by bucket: that with the highest priority up to the pod's, else the lowest. ``pods``: (priority, pod)."""
    groups: list[list[_Pod]] = [[] for _ in buckets]
    for priority, pod in pods:
        candidates = [index for index, bucket in enumerate(buckets) if bucket.priority <= priority]
        groups[candidates[-1] if candidates else 0].append(pod)
    return groups


def grace_override(bucket_seconds: int, termination_grace: int | None) -> int:
    """Grace period of a pod: the lesser of both, at least 1 s. NSM killPods, PW."""
    return max(_lesser(bucket_seconds, termination_grace), 1)


def _lesser(bucket_seconds: int, termination_grace: int | None) -> int:
    return bucket_seconds if termination_grace is None else min(bucket_seconds, termination_grace)


class ShutdownManager:
    """Shutdown manager. Signals are handled one after the other: a cancellation after all buckets (facts 2)."""

    def __init__(self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers) -> None:
        self._process, self._reporter, self._workers = process, reporter, workers
        self._logind, self._spec = process.machine.logind, process.spec
        self._buckets = buckets_of(process.machine.spec)
        self._lock: Inhibitor | None = None
        self.recorded_lock_loss: bool | None = None  # of the next cancellation, in a replay
        self._signals: deque[bool] = deque()
        self._is_busy = self._is_disconnected = False
        self._started_at = 0.0

    def start(self) -> None:
        """Raise logind's limit if needed, take the lock, subscribe. There is no retry after a failure."""
        if not self._logind.is_running and self._spec.has_breakage("gauges-without-dbus"):
            self._process.after_jitter(*_RELOAD, self._reload)
        if not self._buckets or not self._logind.is_running:
            return
        if self._needs_override():
            self._override()
            if self._needs_override():
                return  # the kubelet polls for 1.5 s, and then leaves the manager off
        try:
            self._connect()
        except LogindError:
            return
        late = self._spec.shift("gauges")
        self._process.after_jitter(_RELOAD[0] + late, _RELOAD[1] + late, self._reload)

    def _needs_override(self) -> bool:
        return sum(bucket.seconds for bucket in self._buckets) > self._logind.inhibit_delay_max

    def _override(self) -> None:
        """Write a drop-in and send SIGHUP; a drop-in with a later name overrides it (facts 1.7)."""
        total = sum(bucket.seconds for bucket in self._buckets)
        self._process.machine.files[_DROP_IN] = f"# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={total}\n"
        self._logind.reload()

    def _connect(self) -> None:
        """Take the lock and subscribe. Raises LogindError."""
        self._take_lock()
        self._logind.listen(self._on_signal, self._on_bus_disconnect)

    def _on_bus_disconnect(self) -> None:
        """Handle the disconnect of D-Bus: once idle, the event loop reconnects every second."""
        self._is_disconnected = True
        if not self._is_busy:
            self._process.after(_RECONNECT, self._reconnect)

    def _reconnect(self) -> None:
        if not self._is_disconnected:
            return
        try:
            self._connect()
        except LogindError:
            self._process.after(_RECONNECT, self._reconnect)
            return
        self._is_disconnected = False

    def close(self) -> None:
        """Close the file descriptors of the ended process."""
        self._logind.unlisten(self._on_signal, self._on_bus_disconnect)
        self.lose_lock()

    def _on_signal(self, active: bool) -> None:
        if not active and self._is_busy and self._spec.has_breakage("cancellation-at-once"):
            self._on_cancel()
            return
        self._signals.append(active)
        if not self._is_busy:
            self._process_next()

    def _process_next(self) -> None:
        self._is_busy = False
        if self._signals:
            self._is_busy = True
            reordered = self._spec.has_breakage("signals-reordered")
            active = self._signals.pop() if reordered else self._signals.popleft()
            event = "shutdown" if active else "cancelled"
            self._process.log(_MANAGER, "Shutdown manager detected new shutdown event", event=event)
            if active:
                self._process.after(0.0, self._begin)
            else:
                self._process.after(self._spec.shift("cancellation"), self._on_cancel)
        elif self._is_disconnected:
            self._process.after(_RECONNECT, self._reconnect)

    def _begin(self) -> None:
        """Start a shutdown: facts 1.4, steps 1 to 5."""
        self._emit_event("Shutdown manager detected shutdown event")
        self._process.log(_MANAGER, "Shutdown manager processing shutdown event")
        self._process.is_shutting_down = True
        self._reporter.report_now()
        self._started_at = self._process.sim.now
        self._process.machine.files[STATE_FILE] = state_file(self._started_at, None)
        metrics = self._process.metrics
        metrics.shutdown_start, metrics.shutdown_end = int(self._started_at), 0
        workers = [(worker.priority, worker) for worker in self._workers.active_pods()]
        plan = list(zip(self._buckets, group_by_priority(self._buckets, workers), strict=True))
        if self._spec.has_breakage("lock-release-early"):
            self.lose_lock()
        if self._spec.has_breakage("buckets-reordered"):
            plan.reverse()
        if self._spec.has_breakage("buckets-parallel"):
            for bucket, members in plan:
                self._kill(bucket, members, set())
        self._run(plan)

    def _run(self, remaining: list[tuple[Bucket, list[Worker]]]) -> None:
        """Process the buckets in order, without empty ones."""
        while remaining and not remaining[0][1] and not self._spec.has_breakage("empty-bucket-waited"):
            remaining = remaining[1:]
        if not remaining:
            self._finish()
            return
        (bucket, workers), rest = remaining[0], remaining[1:]
        waiting = set(workers)
        limit = math.inf if self._spec.has_breakage("bucket-timer-ignored") else bucket.seconds
        self._kill(bucket, workers, waiting)
        self._wait(waiting, workers, self._process.sim.now + limit, bucket, rest)

    def _kill(self, bucket: Bucket, workers: list[Worker], waiting: set[Worker]) -> None:
        for index, worker in enumerate(workers):
            grace = grace_override(bucket.seconds, worker.termination_grace)
            pod, logged_grace = f"{worker.namespace}/{worker.name}", _lesser(bucket.seconds, worker.termination_grace)
            self._process.log(_PODS, "Shutdown manager killing pod with gracePeriod", pod=pod, gracePeriod=logged_grace)
            done = partial(self._on_pod_end, waiting)
            if self._spec.has_breakage("bucket-serial"):
                self._process.after(3.0 * index, self._workers.kill_for_shutdown, worker, grace, done)
            else:
                self._workers.kill_for_shutdown(worker, grace, done)

    def _on_pod_end(self, waiting: set[Worker], worker: Worker) -> None:
        self._process.log(_PODS, "Shutdown manager finished killing pod", pod=f"{worker.namespace}/{worker.name}")
        waiting.discard(worker)

    def _wait(
        self,
        waiting: set[Worker],
        workers: list[Worker],
        end: float,
        bucket: Bucket,
        rest: list[tuple[Bucket, list[Worker]]],
    ) -> None:
        """Wait until all pods have ended and their volumes are unmounted, or the bucket's time is over."""
        done = not waiting and (
            all(worker.is_unmounted for worker in workers) or self._spec.has_breakage("volumes-not-waited")
        )
        done = done and bool(workers or not self._spec.has_breakage("empty-bucket-waited"))
        now = self._process.sim.now
        if done or now >= end:
            ended, late = "Done waiting for all pods in group to terminate", "Shutdown manager pod killing time out"
            message = ended if done else late
            self._process.log(_PODS, message, gracePeriod=bucket.seconds, priority=bucket.priority)
            self._run(rest)
            return
        self._process.after(min(_POLL, end - now), self._wait, waiting, workers, end, bucket, rest)

    def _finish(self) -> None:
        """Finish a shutdown, steps 6 and 7: write the state file, then release the lock."""
        now = self._process.sim.now
        self._process.machine.files[STATE_FILE] = state_file(self._started_at, now)
        self._process.metrics.shutdown_end = int(now)
        message = "Shutdown manager completed processing shutdown event, node will shutdown shortly"
        self._process.log(_MANAGER, message)
        self._process_next()
        if late := self._spec.shift("lock-release"):
            self._process.after(late, self.lose_lock)
        else:
            self.lose_lock()

    def _on_cancel(self) -> None:
        """Handle a cancellation; the node's status follows with its next regular sync."""
        self._emit_event("Shutdown manager detected shutdown cancellation")
        self._process.is_shutting_down = False
        held_before = self._lock is not None
        recorded, self.recorded_lock_loss = self.recorded_lock_loss, None
        try:
            self._take_lock()
        except LogindError:
            self._process_next()
            return
        lost = not held_before and self._has_lock_defect() if recorded is None else recorded
        if lost:
            self.lose_lock()
        self._process_next()

    def _has_lock_defect(self) -> bool:
        """Whether the new lock is lost: its descriptor has the number of the old one, which is closed. Facts 2, 18."""
        option = self._process.spec.inhibitor_lost_after_cancel
        return option == "always" or (option == "seeded" and self._process.sim.rng.random() < _LOST_IN_TRIES)

    def _take_lock(self) -> None:
        lock = Inhibitor(
            "shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay", 0, self._process.pid
        )
        self._logind.inhibit(lock)
        old, self._lock = self._lock, lock
        if old is not None:
            self._logind.release(old)

    def lose_lock(self) -> None:
        """Close the file descriptor of the lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            self._logind.release(lock)

    def _reload(self) -> None:
        """Set the gauges from the state file, unless a shutdown has started; times of 0 are skipped."""
        text = self._process.machine.files.get(STATE_FILE)
        metrics = self._process.metrics
        if text is not None and metrics.shutdown_start == 0:
            metrics.shutdown_start, metrics.shutdown_end = read_state_file(text)

    def _emit_event(self, message: str) -> None:
        self._process.emit_node("Shutdown", message)

"""Graceful node shutdown, what Linux and Windows share: buckets by priority, state file, metrics. Facts 1, 2 and 4."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_worker import CRITICAL, Worker
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import STATE_FILE, Process, read_state_file, state_file
from chaos.lab.spec import NodeSpec, parse_duration

_PODS = "nodeshutdown_manager"  # source file in log entries

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


class GracefulShutdown:
    """Ends the pods of a node bucket by bucket. A subclass decides when, by ``_end_pods``, and what follows.

    ``recorded_lock_loss``: whether the next cancellation loses the lock, in a replay.
    """

    def __init__(self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers) -> None:
        self._process, self._reporter, self._workers = process, reporter, workers
        self._rules = process.rules.node_shutdown
        self._buckets = buckets_of(process.machine.spec)
        self._started_at = 0.0
        self.recorded_lock_loss: bool | None = None

    def start(self) -> None:
        """Start with the kubelet. There is no retry after a failure."""
        raise NotImplementedError

    def close(self) -> None:
        """Give up what the ended process held."""

    def lose_lock(self) -> None:
        """Close the file descriptor of the inhibitor lock, if there is one."""

    def _on_pods_chosen(self) -> None:
        """Hook between the choice of the pods and the end of the first."""

    def _on_pods_ended(self) -> None:
        """Hook after the last bucket, once the state file is written."""

    def _end_pods(self) -> None:
        """Start a shutdown: facts 1.4, steps 2 to 5."""
        self._process.is_shutting_down = True
        self._reporter.report_now()
        self._started_at = self._process.sim.now
        self._process.machine.files[STATE_FILE] = state_file(self._started_at, None)
        metrics = self._process.metrics
        metrics.shutdown_start, metrics.shutdown_end = int(self._started_at), 0
        workers = [(worker.priority, worker) for worker in self._workers.active_pods()]
        plan = list(zip(self._buckets, group_by_priority(self._buckets, workers), strict=True))
        self._on_pods_chosen()
        if self._rules.highest_priority_first:
            plan.reverse()
        if self._rules.all_groups_at_once:
            for bucket, members in plan:
                self._kill(bucket, members, set())
        self._run(plan)

    def _run(self, remaining: list[tuple[Bucket, list[Worker]]]) -> None:
        """Process the buckets in order, without empty ones."""
        while remaining and not remaining[0][1] and not self._rules.waits_for_empty_groups:
            remaining = remaining[1:]
        if not remaining:
            self._finish()
            return
        (bucket, workers), rest = remaining[0], remaining[1:]
        waiting = set(workers)
        limit = bucket.seconds if self._rules.limits_groups else math.inf
        self._kill(bucket, workers, waiting)
        self._wait(waiting, workers, self._process.sim.now + limit, bucket, rest)

    def _kill(self, bucket: Bucket, workers: list[Worker], waiting: set[Worker]) -> None:
        for index, worker in enumerate(workers):
            grace = grace_override(bucket.seconds, worker.termination_grace)
            pod, logged_grace = f"{worker.namespace}/{worker.name}", _lesser(bucket.seconds, worker.termination_grace)
            self._process.log(_PODS, "Shutdown manager killing pod with gracePeriod", pod=pod, gracePeriod=logged_grace)
            done = partial(self._on_pod_end, waiting)
            if apart := self._rules.seconds_between_pods:
                self._process.after(apart * index, self._workers.kill_for_shutdown, worker, grace, done)
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
        """Wait until all pods have ended, since v1.32 for their volumes as well, or the bucket's time is over."""
        unmounted = not self._rules.waits_for_volumes or all(worker.is_unmounted for worker in workers)
        done = not waiting and unmounted and bool(workers or not self._rules.waits_for_empty_groups)
        now = self._process.sim.now
        if done or now >= end:
            ended, late = "Done waiting for all pods in group to terminate", "Shutdown manager pod killing time out"
            message = ended if done else late
            self._process.log(_PODS, message, gracePeriod=bucket.seconds, priority=bucket.priority)
            self._run(rest)
            return
        self._process.after(
            min(self._rules.unmount_poll_period, end - now), self._wait, waiting, workers, end, bucket, rest
        )

    def _finish(self) -> None:
        """Finish a shutdown, step 6: write the state file."""
        now = self._process.sim.now
        self._process.machine.files[STATE_FILE] = state_file(self._started_at, now)
        self._process.metrics.shutdown_end = int(now)
        self._on_pods_ended()

    def _reload(self) -> None:
        """Set the gauges from the state file, unless a shutdown has started; times of 0 are skipped."""
        text = self._process.machine.files.get(STATE_FILE)
        metrics = self._process.metrics
        if text is not None and metrics.shutdown_start == 0:
            metrics.shutdown_start, metrics.shutdown_end = read_state_file(text)

    def _emit_event(self, message: str) -> None:
        self._process.emit_node("Shutdown", message)

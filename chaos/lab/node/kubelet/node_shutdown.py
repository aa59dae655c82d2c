"""Graceful node shutdown: what Linux and Windows share, and Linux' manager of logind's signals. Facts 1, 2 and 4."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from chaos.lab.node.kubelet.metrics import STATE_FILE, read_state_file, state_file
from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_worker import (
    Bucket,
    Worker,
    buckets_of,
    grace_override,
    group_by_priority,
    has_gate,
    lesser_grace,
)
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.logind import Inhibitor, LogindError

_PODS = "nodeshutdown_manager"  # source file in log entries


class GracefulShutdown:
    """Ends the pods of a node bucket by bucket. A subclass decides when, by ``_end_pods``, and what follows.

    ``chosen_lock_loss``: whether the next cancellation loses the lock; None for chance.
    """

    def __init__(self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers) -> None:
        self._process, self._reporter, self._workers = process, reporter, workers
        self._rules = process.rules.node_shutdown
        self._buckets = buckets_of(process.machine.spec, self._rules)
        self._started_at = 0.0
        self.chosen_lock_loss: bool | None = None

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
        self._later(self._process.rules.node_status.shutdown_report_delay, self._reporter.report_now)
        self._started_at = self._process.sim.now
        self._process.machine.files[STATE_FILE] = state_file(self._started_at, None)
        metrics = self._process.metrics
        metrics.shutdown_start, metrics.shutdown_end = int(self._started_at), 0
        workers = [(worker.priority, worker) for worker in self._workers.active_pods()]
        plan = list(zip(self._buckets, group_by_priority(self._buckets, workers, self._rules), strict=True))
        self._on_pods_chosen()
        if self._rules.highest_priority_first:
            plan.reverse()
        if self._rules.all_groups_at_once:
            for bucket, members in plan:
                self._kill(bucket, members, set())
        self._later(self._rules.stop_delay, self._run, plan)

    def _later(self, delay: float, call: Callable[..., object], *arguments: object) -> None:
        """Call after a delay, at once without one."""
        if delay:
            self._process.after(delay, call, *arguments)
        else:
            call(*arguments)

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
            grace = grace_override(bucket.seconds, worker.termination_grace, self._rules)
            pod, logged_grace = (
                f"{worker.namespace}/{worker.name}",
                lesser_grace(bucket.seconds, worker.termination_grace, self._rules),
            )
            self._process.log(_PODS, "Shutdown manager killing pod with gracePeriod", pod=pod, gracePeriod=logged_grace)
            done = partial(self._on_pod_end, waiting)
            delay = self._rules.seconds_between_pods * index
            self._later(delay, self._workers.kill_for_shutdown, worker, grace, done)

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


_LOCK = ("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay")
_DROP_IN = "/etc/systemd/logind.conf.d/99-kubelet.conf"
# Probability for inhibitorLostAfterCancel=seeded that no other file was given the number of the released lock: real
# kubelets lose the new lock "in most tries".
_NUMBER_STAYS_FREE = 0.8
_MANAGER = "nodeshutdown_manager_linux"  # source file in log entries


class ShutdownManager(GracefulShutdown):
    """Shutdown manager. Signals are handled one after the other: a cancellation after all buckets (facts 2)."""

    def __init__(self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers) -> None:
        super().__init__(process, reporter, workers)
        self._logind = process.machine.logind
        self._lock_number = 0  # file descriptor, 0 before the first; still there after the lock was released
        self._signals: deque[bool] = deque()
        self._is_busy = self._is_disconnected = False

    def start(self) -> None:
        """Raise logind's limit if needed, take the lock, subscribe. There is no retry after a failure."""
        if not self._logind.is_running and self._rules.gauges_without_logind:
            self._process.after_jitter(*self._rules.gauges_delay, self._reload)
        is_on = has_gate(self._process.machine.spec, self._rules, "GracefulNodeShutdown")
        if not self._buckets or not self._logind.is_running or not is_on:
            return
        if self._needs_override() and self._rules.raises_inhibit_delay_max:
            self._override()
            if self._needs_override():
                return  # the kubelet polls for 1.5 s, and then leaves the manager off
        try:
            self._connect()
        except LogindError:
            return
        self._process.after_jitter(*self._rules.gauges_delay, self._reload)

    def _needs_override(self) -> bool:
        return sum(bucket.seconds for bucket in self._buckets) > self._logind.inhibit_delay_max

    def _override(self) -> None:
        """Write a drop-in and send SIGHUP; a drop-in with a later name overrides it (facts 1.7)."""
        total = sum(bucket.seconds for bucket in self._buckets)
        self._process.machine.files[_DROP_IN] = f"# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={total}\n"
        self._logind.reload()

    def _connect(self) -> None:
        """Take the lock and subscribe. Raises LogindError."""
        if self._rules.takes_lock:
            self._take_lock()
        self._logind.listen(self._on_signal, self._on_bus_disconnect)

    def _on_bus_disconnect(self) -> None:
        """Handle the disconnect of D-Bus: once idle, the event loop reconnects every second."""
        self._is_disconnected = True
        if not self._is_busy:
            self._process.after(self._rules.dbus_reconnect_period, self._reconnect)

    def _reconnect(self) -> None:
        if not self._is_disconnected:
            return
        try:
            self._connect()
        except LogindError:
            self._process.after(self._rules.dbus_reconnect_period, self._reconnect)
            return
        self._is_disconnected = False

    def close(self) -> None:
        """Close the file descriptors of the ended process."""
        self._logind.unlisten(self._on_signal, self._on_bus_disconnect)
        self._process.descriptors.close_all()

    def _on_signal(self, active: bool) -> None:
        if not (self._rules.heeds_signals if active else self._rules.heeds_cancellation):
            return
        if not active and self._is_busy and self._rules.cancellation_at_once:
            self._on_cancel()
            return
        self._signals.append(active)
        if not self._is_busy:
            self._process_next()

    def _process_next(self) -> None:
        self._is_busy = False
        if self._signals:
            self._is_busy = True
            active = self._signals.pop() if self._rules.last_signal_first else self._signals.popleft()
            event = "shutdown" if active else "cancelled"
            self._process.log(_MANAGER, "Shutdown manager detected new shutdown event", event=event)
            if active:
                self._process.after(0.0, self._begin)
            else:
                self._process.after(self._rules.cancellation_delay, self._on_cancel)
        elif self._is_disconnected:
            self._process.after(self._rules.dbus_reconnect_period, self._reconnect)

    def _begin(self) -> None:
        """Start a shutdown: facts 1.4, steps 1 to 5."""
        self._emit_event("Shutdown manager detected shutdown event")
        self._process.log(_MANAGER, "Shutdown manager processing shutdown event")
        self._end_pods()

    def _on_pods_chosen(self) -> None:
        if self._rules.releases_lock_first:
            self.lose_lock()

    def _on_pods_ended(self) -> None:
        """Step 7: release the lock."""
        message = "Shutdown manager completed processing shutdown event, node will shutdown shortly"
        self._process.log(_MANAGER, message)
        self._process_next()
        self._later(self._rules.lock_release_delay, self.lose_lock)

    def _on_cancel(self) -> None:
        """Handle a cancellation; the node's status follows with its next regular sync."""
        self._emit_event("Shutdown manager detected shutdown cancellation")
        self._process.is_shutting_down = False
        with suppress(LogindError):  # the kubelet ignores it, too
            self._take_lock()
        self.chosen_lock_loss = None
        if self._rules.restores_pods:
            self._workers.restore()
        self._process_next()

    def _take_lock(self) -> None:
        """Take a lock, then close the number of the former one (acquireInhibitLock). Raises LogindError.

        That number is free after a shutdown, because the lock was released when the pods had ended. So the new lock
        gets the same number, and is closed immediately, unless another file has been given the number in between: then
        that file is closed. Facts 2 and 18.
        """
        descriptors, former = self._process.descriptors, self._lock_number
        lock = Inhibitor(*_LOCK, 0, self._process.pid)
        self._logind.inhibit(lock)
        if former and not descriptors.is_open(former) and self._has_opened_another():
            descriptors.open()
        self._lock_number = descriptors.open(partial(self._logind.release, lock))
        if former:
            descriptors.close(former)

    def _has_opened_another(self) -> bool:
        """Whether the kubelet has opened another file since it released its lock."""
        if self.chosen_lock_loss is not None:
            return not self.chosen_lock_loss
        option = self._process.spec.inhibitor_lost_after_cancel
        return option == "never" or (option == "seeded" and self._process.sim.rng.random() >= _NUMBER_STAYS_FREE)

    def lose_lock(self) -> None:
        """Close the file descriptor of the lock, whose number the manager keeps (ReleaseInhibitLock)."""
        self._process.descriptors.close(self._lock_number)

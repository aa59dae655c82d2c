"""Graceful node shutdown on Linux: the manager that handles logind's signals. Facts 1, 2 and 4."""

from __future__ import annotations

from collections import deque

from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_shutdown import GracefulShutdown
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.logind import Inhibitor, LogindError

_DROP_IN = "/etc/systemd/logind.conf.d/99-kubelet.conf"
_LOST_IN_TRIES = 0.8  # "in most tries": probability for inhibitorLostAfterCancel=seeded
_MANAGER = "nodeshutdown_manager_linux"  # source file in log entries


class ShutdownManager(GracefulShutdown):
    """Shutdown manager. Signals are handled one after the other: a cancellation after all buckets (facts 2)."""

    def __init__(self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers) -> None:
        super().__init__(process, reporter, workers)
        self._logind = process.machine.logind
        self._lock: Inhibitor | None = None
        self._signals: deque[bool] = deque()
        self._is_busy = self._is_disconnected = False

    def start(self) -> None:
        """Raise logind's limit if needed, take the lock, subscribe. There is no retry after a failure."""
        if not self._logind.is_running and self._rules.gauges_without_logind:
            self._process.after_jitter(*self._rules.gauges_delay, self._reload)
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
        self.lose_lock()

    def _on_signal(self, active: bool) -> None:
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
        if late := self._rules.lock_release_delay:
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

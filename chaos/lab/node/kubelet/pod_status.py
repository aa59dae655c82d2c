"""Status writes, rejections and events of pods, from the kubelet to the API server."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.status import View, write_rejection, write_status
from chaos.lab.objects.accessors import Object, uid_of


class PodStatuses:
    """Writes statuses by the pods that this process has seen last, which are outdated while the API is unreachable."""

    def __init__(self, process: Process) -> None:
        self._process, self._store = process, process.registry.store

    def pod(self, worker: Worker) -> Object | None:
        """Pod object of the worker, None if it was removed."""
        if worker.is_static or not self._process.link.is_up:
            return worker.pod
        pod = self._store.get("pods", worker.namespace, worker.name)
        if pod is None or uid_of(pod) != worker.uid:
            return None
        worker.pod = pod
        return pod

    def write(self, worker: Worker, final: bool = False) -> None:
        """Write the status. ``final``: the pod has ended."""
        self._process.link.send(("status", worker.uid), self._write_now, worker, final)

    def write_changed(self, workers: Sequence[Worker]) -> None:
        """Write the statuses that have changed since their last write: few of those of every sync, every 10 s."""
        link = self._process.link
        for worker in workers:
            if link.is_up and self._store.get("pods", worker.namespace, worker.name) is worker.last_written_pod:
                link.on_frame()
            else:
                self.write(worker)

    def reject(self, worker: Worker, reason: str, message: str) -> None:
        """Write phase Failed for a pod that is not admitted."""
        self._process.metrics.reject(reason)
        self.emit(worker.pod, reason, message, type_="Warning")
        self._process.link.send(("status", worker.uid), self._reject_now, worker, reason, message)

    def _reject_now(self, worker: Worker, reason: str, message: str) -> None:
        now, spec = self._process.sim.now, self._process.spec

        def change(pod: Object) -> None:
            write_rejection(pod, spec, reason, message, now)

        self._store.patch_status("pods", worker.namespace, worker.name, change)

    def drop_address(self, worker: Worker) -> None:
        """Remove the IP address of a pod that ended before this process started."""

        def change(pod: Object) -> None:
            pod["status"].pop("podIP", None)
            pod["status"].pop("podIPs", None)

        self._store.patch_status("pods", worker.namespace, worker.name, change)

    def emit(self, pod: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Send an event about the pod."""
        self._process.emit("Pod", pod, reason, message, type_=type_)

    def _write_now(self, worker: Worker, final: bool) -> None:
        pod = self.pod(worker)
        if pod is None or (worker.state in ("stopping", "ended") and not final):
            return
        machine = self._process.machine
        containers, now = machine.runtime.containers(worker.uid), self._process.sim.now
        known = [(item.id, item.state, item.finished_at, item.ready_at <= now) for item in containers]
        state = (known, worker.ip, worker.has_sandbox, final, worker.cause, worker.crash_backoff)
        if pod is worker.last_written_pod and state == worker.last_written_inputs:
            return  # unchanged
        view = View(
            containers, self._process.spec, machine.address, worker.ip, worker.has_sandbox,
            final, worker.is_static, worker.cause, worker.crash_backoff,
        )  # fmt: skip
        written = self._store.patch_status(
            "pods", worker.namespace, worker.name, lambda pod: write_status(pod, view, now)
        )
        worker.last_written_inputs, worker.last_written_pod = state, written
        if written is not None and not worker.is_static:
            worker.pod = written  # and the version before is freed

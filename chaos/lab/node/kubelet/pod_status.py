"""What the kubelet sends to the API server about its pods: their status, rejections and events."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.status import View, write_rejection, write_status
from chaos.lab.objects.accessors import Object, uid_of


class PodStatuses:
    """Knows pods as this process does: while the API server is out of reach, as they were."""

    def __init__(self, process: Process) -> None:
        self._process, self._store = process, process.registry.store

    def pod(self, worker: Worker) -> Object | None:
        """The worker's pod, None if it is gone."""
        if worker.is_static or not self._process.link.is_up:
            return worker.pod
        pod = self._store.get("pods", worker.namespace, worker.name)
        if pod is None or uid_of(pod) != worker.uid:
            return None
        worker.pod = pod
        return pod

    def write(self, worker: Worker, final: bool = False) -> None:
        """Send the status; ``final``: the pod has ended."""
        self._process.link.send(("status", worker.uid), self._write_now, worker, final)

    def write_changed(self, workers: Sequence[Worker]) -> None:
        """Send the statuses that are not as they were last written here; most are, on every node, every ten seconds."""
        link = self._process.link
        for worker in workers:
            if link.is_up and self._store.get("pods", worker.namespace, worker.name) is worker.last_written_pod:
                link.on_frame()
            else:
                self.write(worker)

    def reject(self, worker: Worker, reason: str, message: str) -> None:
        """The pod is not admitted."""
        self._process.metrics.reject(reason)
        self.emit(worker.pod, reason, message, type_="Warning")
        self._process.link.send(("status", worker.uid), self._reject_now, worker, reason, message)

    def _reject_now(self, worker: Worker, reason: str, message: str) -> None:
        now = self._process.sim.now

        def change(pod: Object) -> None:
            write_rejection(pod, reason, message, now)

        self._store.patch_status("pods", worker.namespace, worker.name, change)

    def drop_address(self, worker: Worker) -> None:
        """Of a pod that had ended before this process began."""

        def change(pod: Object) -> None:
            pod["status"].pop("podIP", None)
            pod["status"].pop("podIPs", None)

        self._store.patch_status("pods", worker.namespace, worker.name, change)

    def emit(self, pod: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """An event about the pod."""
        self._process.emit("Pod", pod, reason, message, type_=type_)

    def _write_now(self, worker: Worker, final: bool) -> None:
        pod = self.pod(worker)
        if pod is None or (worker.state in ("stopping", "ended") and not final):
            return
        machine = self._process.machine
        containers = machine.runtime.containers(worker.uid)
        known = [(item.id, item.state, item.finished_at) for item in containers]
        state = (known, worker.ip, worker.has_sandbox, final, worker.cause, worker.crash_backoff)
        if pod is worker.last_written_pod and state == worker.last_written_inputs:
            return  # it would be the same again
        view = View(
            containers, self._process.spec, machine.address, worker.ip, worker.has_sandbox,
            final, worker.is_static, worker.cause, worker.crash_backoff,
        )  # fmt: skip
        now = self._process.sim.now
        worker.last_written_inputs, worker.last_written_pod = (
            state,
            self._store.patch_status("pods", worker.namespace, worker.name, lambda pod: write_status(pod, view, now)),
        )

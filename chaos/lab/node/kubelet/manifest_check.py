"""Manifests of static pods, listed at the start of a kubelet and then every 20 s.

pkg/kubelet/config/file.go: inotify, which reports written files, sees no mount.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.static_pods import MANIFESTS, MirrorPods, read_manifests
from chaos.lab.objects.accessors import Object, uid_of

_PERIOD = 20.0  # fileCheckFrequency
_DEFAULT_GRACE = 30


class ManifestCheck:
    """Starts and ends static pods. ``workers``: by the pod's UID; ``start`` makes one, ``stop`` ends its containers."""

    def __init__(
        self,
        process: Process,
        workers: dict[str, Worker],
        mirrors: MirrorPods,
        start: Callable[[Object], object],
        stop: Callable[[Worker, float], object],
    ) -> None:
        self._process, self._workers, self._mirrors = process, workers, mirrors
        self._start, self._stop = start, stop

    def begin(self) -> None:
        """Start the pods of all manifests; a machine without any is not checked again."""
        for pod in self._pods():
            self._start(pod)
        if any(path.startswith(MANIFESTS) for path in self._process.machine.files):
            self._process.after(_PERIOD, self._check)

    def _pods(self) -> list[Object]:
        machine = self._process.machine
        return read_manifests(machine.files, self._process.node, machine.hidden_files)

    def _check(self) -> None:
        pods = {uid_of(pod): pod for pod in self._pods()}
        gone = [worker for worker in self._workers.values() if worker.is_static and worker.uid not in pods]
        for worker in gone:
            if not worker.is_removing:
                worker.is_removing = True
                worker.waiters.append(self._forget)
                grace = worker.termination_grace
                self._stop(worker, float(_DEFAULT_GRACE if grace is None else grace))
        for uid, pod in pods.items():
            if uid not in self._workers:
                self._start(pod)
        self._process.after(_PERIOD, self._check)

    def _forget(self, worker: Worker) -> None:
        self._workers.pop(worker.uid, None)
        self._process.machine.runtime.remove(worker.uid)
        self._mirrors.remove(worker)

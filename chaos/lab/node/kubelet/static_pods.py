"""Manifests of static pods, listed at the start of a kubelet and then every 20 s.

pkg/kubelet/config/file.go: inotify, which reports written files, sees no mount.
Static pods from manifests of a machine, and their mirror pods in the API server. Facts 1.2, 1.6, 1.8.
A static pod runs without an API server. After a shutdown, even a cancelled one, it stays ended until the kubelet
restarts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable

import msgspec

from chaos.lab.apiserver.admission import PREFIX
from chaos.lab.apiserver.store import clone
from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import Object, is_deleting, name_of, namespace_of, uid_of
from chaos.lab.spec import StaticPod


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
            self._process.after(self._process.rules.pods.file_check_frequency, self._check)

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
                default = self._process.rules.pods.default_termination_grace_period_seconds
                grace = worker.termination_grace
                self._stop(worker, float(default if grace is None else grace))
        for uid, pod in pods.items():
            if uid not in self._workers:
                self._start(pod)
        self._process.after(self._process.rules.pods.file_check_frequency, self._check)

    def _forget(self, worker: Worker) -> None:
        self._workers.pop(worker.uid, None)
        self._process.machine.runtime.remove(worker.uid)
        self._mirrors.remove(worker)


MANIFESTS = "/etc/kubernetes/manifests/"
_RETRY = 1.0
_MIRROR = "kubernetes.io/config.mirror"


def manifest(pod: StaticPod) -> str:
    """Manifest of a static pod, in JSON."""
    spec: Object = {
        "containers": [{"name": pod.name, "image": f"registry.k8s.io/{pod.name}"}],
        "terminationGracePeriodSeconds": pod.termination_grace_period_seconds,
        "hostNetwork": True,
    }
    if pod.priority_class_name:
        spec["priorityClassName"] = pod.priority_class_name
    behaviour = {PREFIX + "stops-after": f"{pod.stops_after:g}", PREFIX + "exit-code": str(pod.exit_code)}
    metadata: Object = {"name": pod.name, "namespace": pod.namespace, "annotations": behaviour}
    if pod.labels:
        metadata["labels"] = pod.labels
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).decode() + "\n"


def read_manifests(files: dict[str, str], node: str, hidden: Collection[str] = ()) -> list[Object]:
    """Static pods of a machine, with the kubelet's names; the uid is a hash of the file and the node.

    Without ``hidden`` paths: pkg/kubelet/config/file.go extractFromDir takes neither devices nor what it cannot parse.
    """
    paths = sorted(path for path in files if path.startswith(MANIFESTS) and path not in hidden)
    return [_static_pod(files[path], node) for path in paths]


def _static_pod(text: str, node: str) -> Object:
    pod: Object = msgspec.json.decode(text, type=dict)
    uid = hashlib.md5(f"{node}/{text}".encode(), usedforsecurity=False).hexdigest()
    pod["metadata"] |= {"name": f"{pod['metadata']['name']}-{node}", "uid": uid, "generation": 1}
    pod["spec"] |= {"nodeName": node, "restartPolicy": "Always"}
    pod["spec"]["tolerations"] = [{"operator": "Exists", "effect": "NoExecute"}]  # pkg/kubelet/config/common.go
    return pod


def is_mirror(pod: Object) -> bool:
    """Whether the object is the mirror of a static pod."""
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def is_mirror_of(pod: Object, static: Object) -> bool:
    """Whether the mirror is of this version of the manifest, and not deleted. KP IsMirrorPodOf."""
    return bool(pod["metadata"]["annotations"][_MIRROR] == static["metadata"]["uid"]) and not is_deleting(pod)


def mirror_of(static: Object, node: Object) -> Object:
    """Mirror of a static pod, owned by ``node``."""
    mirror: Object = clone(static)
    metadata, uid = mirror["metadata"], static["metadata"]["uid"]
    metadata["annotations"] |= {
        _MIRROR: uid, "kubernetes.io/config.hash": uid, "kubernetes.io/config.source": "file",
    }  # fmt: skip
    owner = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    metadata["ownerReferences"] = [{**owner, "controller": True}]
    return mirror


class MirrorPods:
    """Ensures a mirror for each static pod. ``write(worker, final)`` writes a pod's status."""

    def __init__(self, process: Process, write: Callable[[Worker, bool], object]) -> None:
        self._process, self._registry, self._write = process, process.registry, write

    def ensure(self, worker: Worker) -> None:
        """Create the mirror; replace one of another pod or version."""
        self._process.link.send(("mirror", worker.uid), self._ensure_now, worker)

    def remove(self, worker: Worker) -> None:
        """Delete the mirror of a pod whose manifest is gone."""
        self._process.link.send(("mirror", worker.uid), self._remove_now, worker)

    def on_change(self, mirror: Object, workers: Iterable[Worker]) -> None:
        """Restore a deleted mirror, without an effect on the containers."""
        for worker in list(workers):
            if worker.is_static and (worker.namespace, worker.name) == (namespace_of(mirror), name_of(mirror)):
                self.ensure(worker)

    def _remove_now(self, worker: Worker) -> None:
        found = self._registry.store.get("pods", worker.namespace, worker.name)
        if found is not None and is_mirror(found) and is_mirror_of(found, worker.pod):
            self._registry.delete("pods", worker.namespace, worker.name, 0)

    def _ensure_now(self, worker: Worker) -> None:
        store, node = self._registry.store, self._process.node
        found, owner = store.get("pods", worker.namespace, worker.name), store.get("nodes", "", node)
        if found is not None and is_mirror_of(found, worker.pod):
            return
        if found is not None:
            self._registry.delete("pods", worker.namespace, worker.name, 0)
        if owner is None:
            self._process.after(_RETRY, self.ensure, worker)
            return
        self._registry.create("pods", mirror_of(worker.pod, owner))
        self._write(worker, worker.state == "ended")

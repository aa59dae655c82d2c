"""Persistent volumes: each claim gets a PersistentVolume at once. Reclaim policy Delete."""

from __future__ import annotations

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store.store import Change, clone
from chaos.lab.controllers.workqueue import WorkQueue
from chaos.lab.objects.accessors import Object, claims_of, is_deleting, is_terminal, name_of, namespace_of, uid_of
from chaos.lab.objects.volumes import DRIVER
from chaos.lab.sim.clock import SimClock

_PROVISION = (0.2, 0.8)


class PersistentVolumeController:
    """The persistentvolume controller, the CSI provisioner and the claim protection controller in one."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._registry, self._store = registry, registry.store
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(sim, self._sync, *_PROVISION)

    def start(self) -> None:
        self._store.subscribe(self._on_change, "persistentvolumeclaims", "pods", "volumeattachments")

    def _on_change(self, change: Change) -> None:
        obj = change.object
        if change.plural == "persistentvolumeclaims":
            self._queue.add((namespace_of(obj), name_of(obj)))
        elif change.plural == "pods" and (change.type == "DELETED" or is_terminal(obj)):
            for name in claims_of(obj):
                self._queue.add((namespace_of(obj), name))
        elif change.plural == "volumeattachments" and change.type == "DELETED":
            volume = self._store.get("persistentvolumes", "", obj["spec"]["source"]["persistentVolumeName"])
            if volume is not None:
                claim = volume["spec"]["claimRef"]
                self._queue.add((claim["namespace"], claim["name"]))

    def _sync(self, key: tuple[str, str]) -> None:
        claim = self._store.get("persistentvolumeclaims", *key)
        if claim is not None and not is_deleting(claim) and not claim["spec"].get("volumeName"):
            self._provision(claim)
        elif claim is not None and is_deleting(claim) and not self._in_use(key):
            updated: Object = clone(claim)
            updated["metadata"]["finalizers"] = []
            self._registry.update("persistentvolumeclaims", updated)
        self._reclaim(key)

    def _provision(self, claim: Object) -> None:
        name = f"pvc-{uid_of(claim)}"
        reference = {"kind": "PersistentVolumeClaim", "namespace": namespace_of(claim), "name": name_of(claim)}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": claim["spec"]["resources"]["requests"],
            "claimRef": {**reference, "uid": uid_of(claim)},
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Delete",
        }
        self._store.create(
            "persistentvolumes", {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Bound"}}
        )

        def bind(obj: Object) -> None:
            obj["spec"]["volumeName"] = name
            obj["status"] = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": spec["capacity"]}

        self._store.patch("persistentvolumeclaims", namespace_of(claim), name_of(claim), bind)

    def _in_use(self, key: tuple[str, str]) -> bool:
        return any(not is_terminal(pod) for pod in self._store.pods_using(*key))

    def _reclaim(self, key: tuple[str, str]) -> None:
        """Delete the volumes of a deleted claim once they are detached."""
        attached = {item["spec"]["source"]["persistentVolumeName"] for item in self._store.list("volumeattachments")}
        for volume in self._store.list("persistentvolumes"):
            reference = volume["spec"]["claimRef"]
            if (reference["namespace"], reference["name"]) != key or name_of(volume) in attached:
                continue
            claim = self._store.get("persistentvolumeclaims", *key)
            if claim is None or uid_of(claim) != reference["uid"]:
                self._registry.delete("persistentvolumes", "", name_of(volume))

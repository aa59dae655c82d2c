"""Persistent volumes: claims are bound to a free volume, or to one that the CSI provisioner creates."""

from __future__ import annotations

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change, clone
from chaos.lab.apiserver.volumes import (
    DRIVER,
    NO_PROVISIONER,
    SELECTED_NODE,
    class_of,
    matches_terms,
    matching_volumes,
    terms_of,
    waits_for_consumer,
)
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import Object, claims_of, is_deleting, is_terminal, labels_of, name_of, namespace_of, uid_of
from chaos.lab.sim import SimClock

_PROVISION = (0.2, 0.8)
_ZONE = "topology.kubernetes.io/zone"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_Key = tuple[str, str]


class PersistentVolumeController:
    """The persistentvolume controller, the CSI provisioner and the claim protection controller in one.

    pkg/controller/volume/persistentvolume/pv_controller.go syncUnboundClaim, reclaimVolume. Provisioned volumes of a
    class with delayed binding or allowedTopologies can be used in one zone only, if nodes have zones.
    """

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._sim, self._registry, self._store = sim, registry, registry.store
        self._queue: WorkQueue[_Key] = WorkQueue(sim, self._sync, *_PROVISION)

    def start(self) -> None:
        self._store.subscribe(
            self._on_change,
            *("persistentvolumeclaims", "persistentvolumes", "storageclasses", "pods", "volumeattachments"),
        )

    def _on_change(self, change: Change) -> None:
        obj = change.object
        if change.plural == "persistentvolumeclaims":
            self._queue.add((namespace_of(obj), name_of(obj)))
        elif change.plural == "pods" and (change.type == "DELETED" or is_terminal(obj)):
            for name in claims_of(obj):
                self._queue.add((namespace_of(obj), name))
        elif change.plural == "volumeattachments" and change.type == "DELETED":
            volume = self._store.get("persistentvolumes", "", obj["spec"]["source"]["persistentVolumeName"])
            if volume is not None and (reference := volume["spec"].get("claimRef")):
                self._queue.add((reference["namespace"], reference["name"]))
        elif change.plural in ("persistentvolumes", "storageclasses") and change.type == "ADDED":
            for claim in self._store.list("persistentvolumeclaims"):
                if not claim["spec"].get("volumeName"):
                    self._queue.add((namespace_of(claim), name_of(claim)))

    def _sync(self, key: _Key) -> None:
        claim = self._store.get("persistentvolumeclaims", *key)
        if claim is not None and not is_deleting(claim) and not claim["spec"].get("volumeName"):
            self._bind_or_provision(claim)
        elif claim is not None and is_deleting(claim) and not self._in_use(key):
            updated: Object = clone(claim)
            updated["metadata"]["finalizers"] = []
            self._registry.update("persistentvolumeclaims", updated)
        self._reclaim(key)

    def _bind_or_provision(self, claim: Object) -> None:
        """Bind a claim; one with delayed binding only once the scheduler has selected a node."""
        kind, node = class_of(self._store, claim), self._selected_node(claim)
        if waits_for_consumer(self._store, claim) and node is None:
            return
        volumes = matching_volumes(self._store, claim)
        volumes = [volume for volume in volumes if node is None or matches_terms(terms_of(volume), node)]
        if volumes:
            self._bind(claim, min(volumes, key=lambda volume: ("claimRef" not in volume["spec"], name_of(volume))))
        elif kind is None or kind.get("provisioner") != NO_PROVISIONER:
            self._bind(claim, self._provision(claim, kind, node))

    def _selected_node(self, claim: Object) -> Object | None:
        name = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        return self._store.get("nodes", "", name) if name else None

    def _provision(self, claim: Object, kind: Object | None, node: Object | None) -> Object:
        name = f"pvc-{uid_of(claim)}"
        spec: Object = {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
            "csi": {"driver": kind["provisioner"] if kind else DRIVER, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy", "Delete") if kind else "Delete",
        }
        if claim["spec"].get("storageClassName"):
            spec["storageClassName"] = claim["spec"]["storageClassName"]
        zone = self._zone(kind, node) if kind else ""
        if zone:
            expressions = [{"key": _ZONE, "operator": "In", "values": [zone]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
        metadata = {"name": name, "annotations": {_PROVISIONED_BY: spec["csi"]["driver"]}}
        volume = {"metadata": metadata, "spec": spec, "status": {"phase": "Available"}}
        return self._store.create("persistentvolumes", volume)

    def _zone(self, kind: Object, node: Object | None) -> str:
        """Zone of the selected node, else one of the allowed ones; empty without zones."""
        if node is not None:
            return labels_of(node).get(_ZONE, "")
        items = [item for each in kind.get("allowedTopologies") or [] for item in each["matchLabelExpressions"]]
        zones = sorted({value for item in items if item["key"] == _ZONE for value in item["values"]})
        return self._sim.rng.choice(zones) if zones else ""

    def _bind(self, claim: Object, volume: Object) -> None:
        """Bind both to each other."""
        reference = {"kind": "PersistentVolumeClaim", "namespace": namespace_of(claim), "name": name_of(claim)}
        reference["uid"] = uid_of(claim)

        def bind_volume(obj: Object) -> None:
            obj["spec"]["claimRef"] = reference
            obj["status"] = {"phase": "Bound"}

        def bind_claim(obj: Object) -> None:
            obj["spec"]["volumeName"] = name_of(volume)
            modes, capacity = volume["spec"]["accessModes"], volume["spec"]["capacity"]
            obj["status"] = {"phase": "Bound", "accessModes": modes, "capacity": capacity}

        self._store.patch("persistentvolumes", "", name_of(volume), bind_volume)
        self._store.patch("persistentvolumeclaims", namespace_of(claim), name_of(claim), bind_claim)

    def _in_use(self, key: _Key) -> bool:
        return any(not is_terminal(pod) for pod in self._store.pods_using(*key))

    def _reclaim(self, key: _Key) -> None:
        """Delete the volumes of a deleted claim once they are detached, or release those to be retained."""
        attached = {item["spec"]["source"]["persistentVolumeName"] for item in self._store.list("volumeattachments")}
        for volume in self._store.list("persistentvolumes"):
            reference = volume["spec"].get("claimRef")
            if not reference or not reference.get("uid") or (reference["namespace"], reference["name"]) != key:
                continue
            claim = self._store.get("persistentvolumeclaims", *key)
            if claim is not None and uid_of(claim) == reference["uid"]:
                continue
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Retain":
                self._store.patch("persistentvolumes", "", name_of(volume), _release)
            elif name_of(volume) not in attached:
                self._registry.delete("persistentvolumes", "", name_of(volume))


def _release(volume: Object) -> None:
    volume["status"] = {"phase": "Released"}

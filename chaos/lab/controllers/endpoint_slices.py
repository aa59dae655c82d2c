"""EndpointSlice controller: one slice with all endpoints of a Service. pkg/controller/endpointslice.

A pod that a graceful node shutdown stops has no deletionTimestamp: its endpoint stays ready until the pod ends.
Facts 1.6.
"""

from __future__ import annotations

from chaos.lab.apiserver.index import Key
from chaos.lab.apiserver.registry import ForbiddenError, Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.controllers.workload import WorkQueue
from chaos.lab.objects import (
    Object,
    is_deleting,
    is_ready,
    is_terminal,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    owner_reference,
    uid_of,
)
from chaos.lab.sim import SimClock

_ZONE = "topology.kubernetes.io/zone"
_SERVICE = "kubernetes.io/service-name"
_MAX_CACHED = 4096  # sets of labels; those of a StatefulSet's or Job's pods are all different


class EndpointSlices:
    """Writes a slice for each Service with a selector."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        self._registry, self._store = registry, registry.store
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(sim, self._sync)
        self._endpoints: dict[Key, tuple[Object, Object | None, bool, Object]] = {}  # and what they were made from
        self._services: dict[tuple[object, ...], tuple[str, ...]] = {}  # by namespace and labels of a pod

    def start(self) -> None:
        self._store.subscribe(self._on_change, "services", "pods")

    def _on_change(self, change: Change) -> None:
        obj = change.object
        if change.plural == "services":
            self._services.clear()
            if change.type != "DELETED":
                self._queue.add(change.key)
            return
        if change.type == "DELETED":
            self._endpoints.pop(change.key, None)
        if change.type != "MODIFIED" or _differs(change.before, obj):
            names = self._services_of(obj)
            if change.before is not None and labels_of(change.before) != labels_of(obj):
                names = tuple(sorted({*names, *self._services_of(change.before)}))
            for name in names:
                self._queue.add((change.key[0], name))

    def _services_of(self, pod: Object) -> tuple[str, ...]:
        """Names of the Services that select the pod, in order; the same for all pods with these labels."""
        key = (namespace_of(pod), *labels_of(pod).items())
        if (found := self._services.get(key)) is None:
            if len(self._services) >= _MAX_CACHED:
                self._services.clear()
            found = self._services[key] = tuple(name_of(item) for item in self._store.services_selecting(pod))
        return found

    def _sync(self, key: tuple[str, str]) -> None:
        service = self._store.get("services", *key)
        if service is None or is_deleting(service) or not service["spec"].get("selector"):
            return
        pods = self._store.pods_matching(key[0], {"matchLabels": service["spec"]["selector"]})
        publish = bool(service["spec"].get("publishNotReadyAddresses"))
        endpoints = [
            self._endpoint(pod, publish) for pod in pods if not is_terminal(pod) and pod["status"].get("podIP")
        ]
        body = {"addressType": "IPv4", "endpoints": endpoints, "ports": _ports(service)}
        current = next(iter(self._store.list_owned("endpointslices", uid_of(service))), None)
        if current is not None:
            self._store.update("endpointslices", {**current, "metadata": {**current["metadata"]}, **body})
            return
        labels = {_SERVICE: key[1], "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
        metadata: Object = {"generateName": f"{key[1]}-", "namespace": key[0], "labels": labels}
        metadata["ownerReferences"] = [owner_reference("v1", "Service", service)]
        try:
            self._registry.create("endpointslices", {"metadata": metadata, **body})
        except ForbiddenError:
            return  # the namespace is being terminated

    def _endpoint(self, pod: Object, publish: bool) -> Object:
        """Endpoint of the pod: the last one if it was made from the same objects."""
        key, node = (namespace_of(pod), name_of(pod)), self._store.get("nodes", "", node_of(pod))
        known = self._endpoints.get(key)
        if known is None or known[0] is not pod or known[1] is not node or known[2] != publish:
            known = self._endpoints[key] = (pod, node, publish, _endpoint(pod, node, publish))
        return known[3]


def _endpoint(pod: Object, node: Object | None, publish: bool) -> Object:
    zone = labels_of(node).get(_ZONE) if node is not None else None
    serving, terminating = is_ready(pod), is_deleting(pod)
    conditions = {"ready": publish or (serving and not terminating), "serving": serving, "terminating": terminating}
    reference = {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": conditions,
        "nodeName": node_of(pod),
        "targetRef": reference,
        **({"zone": zone} if zone else {}),
    }


def _differs(before: Object | None, after: Object) -> bool:
    """Whether a pod's endpoint differs. k8s.io/endpointslice util podEndpointsChanged."""
    if before is None or before["status"].get("podIPs") != after["status"].get("podIPs"):
        return True
    same = before["spec"] is after["spec"] or _host(before) == _host(after)
    return (
        not same
        or is_ready(before) != is_ready(after)
        or is_deleting(before) != is_deleting(after)
        or labels_of(before) != labels_of(after)
    )


def _host(pod: Object) -> tuple[object, ...]:
    return pod["spec"].get("hostname"), pod["spec"].get("subdomain")


def _ports(service: Object) -> list[Object]:
    """Ports of the pods: targetPort if it is a number, else the port of the Service."""
    found = []
    for item in service["spec"].get("ports") or []:
        target = item.get("targetPort")
        number = target if isinstance(target, int) else item["port"]
        found.append({"name": item.get("name", ""), "port": number, "protocol": item.get("protocol", "TCP")})
    return found

"""The subresources eviction, binding and scale.

services/proxy: requests to an endpoint of a Service. pkg/registry/core/service/storage, ResourceLocation.
Every running container of the lab responds with 200 and the name of its pod, on every port.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chaos.lab.apiserver.eviction import ATTEMPTS, BudgetBusy
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.http.errors import STORE_ERRORS, ApiError, to_api_error
from chaos.lab.http.messages import Request, get_object, json_response, read_body
from chaos.lab.http.options import is_dry_run, parse_delete_options
from chaos.lab.http.resources import RequestInfo
from chaos.lab.http.schemas import PatchMeta
from chaos.lab.http.writes import WriteHandlers, patch_object, read_patch
from chaos.lab.objects import Object, is_deleting, node_of, set_condition, uid_of
from chaos.lab.sim.lockstep import Waits

_CREATED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class SubresourceHandlers:
    """Handlers of the subresources eviction, binding and scale."""

    def __init__(self, cluster: Cluster, lockstep: Waits, writes: WriteHandlers) -> None:
        self._cluster, self._lockstep, self._writes = cluster, lockstep, writes

    async def evict(self, request: Request, info: RequestInfo) -> web.Response:
        """Evict a pod (facts 8.1)."""
        body = await read_body(request)
        if (body.get("metadata") or {}).get("name") != info.name:
            raise ApiError(400, "name in URL does not match name in Eviction object")
        options = body.get("deleteOptions") or {}
        is_dry = parse_delete_options(request, options, info).write_options.dry_run
        for attempt in range(ATTEMPTS):
            try:
                self._cluster.evict_pod(info.namespace, info.name, options, is_dry)
                break
            except BudgetBusy as busy:
                if attempt == ATTEMPTS - 1:
                    raise to_api_error(busy, info) from busy
                await self._lockstep.wait_until(self._cluster.sim.now + busy.retry_delay)
            except STORE_ERRORS as error:
                raise to_api_error(error, info) from error
        return json_response(_CREATED, 201)

    async def bind(self, request: Request, info: RequestInfo) -> web.Response:
        """Bind a pod to a node, as schedulers do. pkg/registry/core/pod/storage/storage.go, assignPod."""
        body = await read_body(request)
        target = body.get("target") or {}
        if target.get("kind", "Node") not in ("", "Node") or not target.get("name"):
            raise ApiError(422, "target: a Node with a name is required")
        pod, node = get_object(self._cluster, info), str(target["name"])
        if (body.get("metadata") or {}).get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
            raise self._binding_conflict(info, "the UID of the binding is not that of the pod")
        if is_deleting(pod):
            raise self._binding_conflict(info, f"pod {info.name} is being deleted, cannot be assigned to a host")
        if node_of(pod):
            raise self._binding_conflict(info, f'pod {info.name} is already assigned to node "{node_of(pod)}"')

        def change(obj: Object) -> None:
            obj["spec"]["nodeName"] = node
            condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            set_condition(obj, condition, self._cluster.sim.timestamp())

        if not is_dry_run(request, body):
            self._cluster.store.patch("pods", info.namespace, info.name, change)
        return json_response(_CREATED, 201)

    def _binding_conflict(self, info: RequestInfo, reason: str) -> ApiError:
        details = {"name": info.name, "kind": "pods/binding"}
        return ApiError(409, f'Operation cannot be fulfilled on pods/binding "{info.name}": {reason}', "", details)

    async def get_scale(self, _: Request, info: RequestInfo) -> web.Response:
        return json_response(_scale(get_object(self._cluster, info)))

    async def put_scale(self, request: Request, info: RequestInfo) -> web.Response:
        return self._rescale(request, info, await read_body(request))

    async def patch_scale(self, request: Request, info: RequestInfo) -> web.Response:
        patch, before = await read_patch(request), _scale(get_object(self._cluster, info))
        return self._rescale(request, info, patch_object(request.content_type, before, patch, PatchMeta({})))

    def _rescale(self, request: Request, info: RequestInfo, scale: Any) -> web.Response:
        """Scale an object. Only spec.replicas is read: pkg/registry/apps/deployment/storage."""
        metadata, spec = (scale.get(key) or {} for key in ("metadata", "spec"))
        replicas = spec.get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise ApiError(400, f"spec.replicas: {replicas!r} is not a whole number")
        if metadata.get("name", info.name) != info.name:
            raise ApiError(400, "the name of the object does not match the name on the URL")
        new: Object = clone(get_object(self._cluster, info))
        new["spec"]["replicas"] = replicas
        if metadata.get("resourceVersion"):
            new["metadata"]["resourceVersion"] = metadata["resourceVersion"]
        return json_response(_scale(self._writes.update_object(request, info, new)))


def _scale(obj: Object) -> Object:
    metadata, labels = obj["metadata"], (obj["spec"].get("selector") or {}).get("matchLabels") or {}
    scale_metadata = {
        key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": scale_metadata,
        "spec": {"replicas": obj["spec"].get("replicas", 0)},
        "status": {"replicas": obj.get("status", {}).get("replicas", 0), "selector": selector},
    }


_NO_ROUTE_TIMEOUT = 3.0  # seconds in which Linux tries to resolve the hardware address of a host that is off
_DIAL_TIMEOUT = 30.0  # the proxy transport's dialer, k8s.io/apimachinery/pkg/util/net


class ServiceProxy:
    """Proxy with round-robin selection of endpoints; Kubernetes selects at random."""

    def __init__(self, cluster: Cluster, lockstep: Waits) -> None:
        self._cluster, self._lockstep = cluster, lockstep
        self._next_endpoint = 0

    async def get(self, _: Request, info: RequestInfo) -> web.Response:
        name, port = _split(info.name)
        service = get_object(self._cluster, RequestInfo(info.resource, info.namespace, name))
        port_name = _port_name(service, name, port)
        ready = [
            (endpoint, item["port"])
            for endpoint_slice in self._cluster.store.list_owned("endpointslices", uid_of(service))
            for endpoint in endpoint_slice["endpoints"] or ()
            for item in endpoint_slice["ports"]
            if endpoint["conditions"]["ready"] and item["name"] == port_name
        ]
        if not ready:
            raise _unavailable_error(f'no endpoints available for service "{name}"')
        self._next_endpoint += 1
        endpoint, number = ready[self._next_endpoint % len(ready)]
        await self._dial(endpoint, f"{endpoint['addresses'][0]}:{number}")
        return web.Response(text=f"{endpoint['targetRef']['name']}\n")

    async def _dial(self, endpoint: Object, address: str) -> None:
        """Connect to the endpoint. Raises ApiError 503."""
        sim, machine = self._cluster.sim, self._cluster.machines[endpoint["nodeName"]]
        if machine.state == "off":
            await self._lockstep.wait_until(sim.now + _NO_ROUTE_TIMEOUT)
            raise _unreachable_error(address, "connect: no route to host")
        if not machine.network.can_connect("ipv4"):
            await self._lockstep.wait_until(sim.now + _DIAL_TIMEOUT)
            raise _unreachable_error(address, "i/o timeout")
        containers = machine.runtime.containers(endpoint["targetRef"]["uid"])
        if not any(container.state == "running" for container in containers):
            raise _unreachable_error(address, "connect: connection refused")


def _split(text: str) -> tuple[str, str]:
    """Name and port of ``[SCHEME:]NAME[:PORT]``. utilnet.SplitSchemeNamePort."""
    parts = text.split(":")
    if len(parts) == 3 and parts[0] in ("", "http", "https"):
        parts = parts[1:]
    if len(parts) > 2 or not parts[0]:
        raise ApiError(400, f'invalid service request "{text}"')
    return parts[0], parts[1] if len(parts) == 2 else ""


def _port_name(service: Object, name: str, port: str) -> str:
    """Name of the endpoint's port; a number is a port of the Service."""
    if not port.isdecimal():
        return port
    for item in service["spec"].get("ports") or ():
        if item["port"] == int(port):
            return str(item.get("name", ""))
    raise _unavailable_error(f'no service port {port} found for service "{name}"')


def _unreachable_error(address: str, reason: str) -> ApiError:
    return _unavailable_error(f"error trying to reach service: dial tcp {address}: {reason}")


def _unavailable_error(message: str) -> ApiError:
    return ApiError(503, message, "ServiceUnavailable")

"""services/proxy: requests to an endpoint of a Service. pkg/registry/core/service/storage, ResourceLocation.

Every running container of the lab responds with 200 and the name of its pod, on every port.
"""

from __future__ import annotations

from aiohttp import web

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Request, get_object
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.cluster import Cluster
from chaos.lab.objects.accessors import Object, uid_of
from chaos.lab.sim.lockstep import Waits

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

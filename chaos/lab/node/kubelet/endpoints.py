"""What the port of a kubelet answers: ``/metrics``, ``/configz``, ``/pods`` and ``/healthz``, to authorized users."""

from __future__ import annotations

from aiohttp import web

from chaos.lab.apiserver.http.access import Access, Attributes
from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Handle, Request, json_response
from chaos.lab.node.machine import Machine

_SUBRESOURCES = {  # of nodes; permission for one of them is enough; pkg/kubelet/server/auth.go
    "/metrics": ("metrics",),
    "/pods": ("pods", "proxy"),
    "/healthz": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
}


class KubeletEndpoints:
    """The handlers of one kubelet."""

    def __init__(self, machine: Machine, access: Access) -> None:
        self._machine, self._access = machine, access

    @property
    def is_responsive(self) -> bool:
        """False for a process stopped by SIGSTOP, or behind a firewall."""
        return not self._machine.kubelet.is_frozen and self._machine.is_kubelet_port_open

    def routes(self) -> list[web.RouteDef]:
        """Handlers by path; they are called through :meth:`respond`."""
        return [
            web.get("/healthz", self._healthz),
            web.get("/metrics", self._metrics),
            web.get("/configz", self._configz),
            web.get("/pods", self._pods),
        ]

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse:
        """Authorize a request and handle it."""
        try:
            user = self._access.authenticate(request.headers.get("Authorization", ""))
            if user.is_anonymous:
                return web.Response(status=401, text="Unauthorized")
            subresources = _SUBRESOURCES.get(request.path, ("proxy",))
            if not any(user.is_allowed(self._attributes(name)) for name in subresources):
                names = " ".join(subresources)
                text = f"Forbidden (user={user.name}, verb=get, resource=nodes, subresource(s)=[{names}])\n"
                return web.Response(status=403, text=text)
            return await handle()
        except ApiError:
            return web.Response(status=401, text="Unauthorized")

    def _attributes(self, subresource: str) -> Attributes:
        return Attributes("get", "", f"nodes/{subresource}", "", self._machine.name)

    async def _healthz(self, _: Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: Request) -> web.Response:
        text = self._machine.kubelet.metrics_text().encode()
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _configz(self, _: Request) -> web.Response:
        return json_response(self._machine.kubelet.configz())

    async def _pods(self, _: Request) -> web.Response:
        return json_response(
            {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self._machine.kubelet.pods()}
        )

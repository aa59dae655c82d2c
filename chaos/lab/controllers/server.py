"""The port of kube-controller-manager: ``/metrics`` for authorized users, ``/healthz`` for all.

Users are those of the API, as with TokenReview and SubjectAccessReview of the real one.
cmd/kube-controller-manager/app/controllermanager.go; k8s.io/controller-manager/app/serve.go, BuildHandlerChain.
"""

from __future__ import annotations

from aiohttp import web

from chaos.lab.apiserver.http.access import Access, Attributes
from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Handler, json_response
from chaos.lab.controllers import Controllers
from chaos.lab.controllers.metrics import format_metrics
from chaos.lab.sim.lockstep import Lockstep


class ControllerManagerServer:
    """HTTP server of the only instance, which is the leader."""

    def __init__(self, controllers: Controllers, lockstep: Lockstep, access: Access) -> None:
        self._controllers, self._lockstep, self._access = controllers, lockstep, access

    def app(self) -> web.Application:
        """Create the application."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/metrics", self._metrics)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        with self._lockstep.request():
            try:
                user = self._access.authenticate(request.headers.get("Authorization", ""))
                self._access.authorize(user, Attributes(request.method.lower(), path=request.path))
                return await handler(request)
            except ApiError as error:
                return json_response(error.status(), error.code, error.headers())

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: web.Request) -> web.Response:
        body = format_metrics(self._controllers).encode()
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

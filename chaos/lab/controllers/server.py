"""The port of kube-controller-manager: ``/metrics`` for authorized users, ``/healthz`` for all.

Users are those of the API, as with TokenReview and SubjectAccessReview of the real one.
cmd/kube-controller-manager/app/controllermanager.go; k8s.io/controller-manager/app/serve.go, BuildHandlerChain.
"""

from __future__ import annotations

from functools import partial

from aiohttp import web

from chaos.lab.apiserver.http.access import Access, Attributes
from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Handle, Handler, Request, json_response
from chaos.lab.controllers import Controllers
from chaos.lab.controllers.metrics import format_metrics
from chaos.lab.sim.lockstep import Waits


class ControllerManagerServer:
    """HTTP server of the only instance, which is the leader."""

    def __init__(self, controllers: Controllers, lockstep: Waits, access: Access) -> None:
        self._controllers, self._lockstep, self._access = controllers, lockstep, access

    def app(self) -> web.Application:
        """Create the application."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        """Handlers by path; they are called through :meth:`respond`."""
        return [web.get("/healthz", self._healthz), web.get("/metrics", self._metrics)]

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return await self.respond(request, partial(handler, request))

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse:
        """Authorize a request and handle it; errors become responses."""
        with self._lockstep.request():
            try:
                user = self._access.authenticate(request.headers.get("Authorization", ""))
                self._access.authorize(user, Attributes(request.method.lower(), path=request.path))
                return await handle()
            except ApiError as error:
                return json_response(error.status(), error.code, error.headers())

    async def _healthz(self, _: Request) -> web.Response:
        return web.Response(text="ok")

    async def _metrics(self, _: Request) -> web.Response:
        body = format_metrics(self._controllers).encode()
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

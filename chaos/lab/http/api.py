"""Kubernetes API server: authorization, and dispatch to the handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from functools import partial

import msgspec
from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem
from chaos.lab.http import openapi
from chaos.lab.http.access import Access, Attributes, User, attributes_of, review
from chaos.lab.http.errors import ApiError
from chaos.lab.http.fault_injection import FaultInjector
from chaos.lab.http.messages import Handle, Handler, Request, json_response, read_body
from chaos.lab.http.pod_exec import PodExecHandler
from chaos.lab.http.reads import ReadHandlers
from chaos.lab.http.resources import (
    REVIEWS,
    SUBRESOURCES,
    UNSIMULATED_SUBRESOURCES,
    RequestInfo,
    group_version_of,
    parse_request_info,
)
from chaos.lab.http.subresources import ServiceProxy, SubresourceHandlers
from chaos.lab.http.watches import WatchServer
from chaos.lab.http.writes import APPLY_PATCH, WriteHandlers
from chaos.lab.sim.lockstep import Waits

_PUBLIC_PATHS = ("/version", "/healthz", "/livez", "/readyz")
_ETCD_TIMEOUT = 7.0  # etcd: ServerConfig.ReqTimeout, 5 s and two election timeouts
_ETCD_POLL = 0.5  # of a majority that may come back
_NO_RESOURCE = "the server could not find the requested resource"
ResourceHandler = Callable[[Request, RequestInfo], Awaitable[web.StreamResponse]]


class ApiServer:
    """API server for the users of ``access``; keeps up to ``watch_cache_size`` changes per resource for watches.

    ``hosts``: what programs see of the machines with Linux, by node.
    """

    def __init__(
        self,
        cluster: Cluster,
        lockstep: Waits,
        access: Access,
        watch_cache_size: int,
        hosts: Mapping[str, HostSystem] | None = None,
    ) -> None:
        self._cluster, self._lockstep, self._access = cluster, lockstep, access
        self.fault_injector = FaultInjector(cluster.spec.api_misbehaviours, cluster.spec.seed)
        self.watches = WatchServer(cluster.store, lockstep, self.fault_injector, watch_cache_size)
        reads, writes = ReadHandlers(cluster, self.watches), WriteHandlers(cluster)
        subresources = SubresourceHandlers(cluster, lockstep, writes)
        self.pod_exec = PodExecHandler(cluster, lockstep, hosts or {})
        self._subresource_handlers: dict[tuple[str, str], ResourceHandler] = {
            ("eviction", "POST"): subresources.evict,
            ("binding", "POST"): subresources.bind,
            ("scale", "GET"): subresources.get_scale,
            ("scale", "PUT"): subresources.put_scale,
            ("scale", "PATCH"): subresources.patch_scale,
            ("proxy", "GET"): ServiceProxy(cluster, lockstep).get,
            ("exec", "GET"): self.pod_exec.serve,
            ("exec", "POST"): self.pod_exec.serve,
        }
        self._collection_handlers: dict[str, ResourceHandler] = {
            "GET": reads.list_or_watch,
            "POST": writes.create,
            "DELETE": writes.delete_collection,
        }
        self._object_handlers: dict[str, ResourceHandler] = {
            "GET": reads.get,
            "PUT": writes.replace,
            "PATCH": writes.patch,
            "DELETE": writes.delete,
        }

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=3 << 20)
        app.on_response_prepare.append(self._set_date)
        app.router.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        """Handlers by path; they are called through :meth:`respond`."""
        return [
            web.get("/version", self._version),
            web.get("/version/", self._version),  # as in the OpenAPI document, and as kr8s asks
            *(web.get(path, self._healthz) for path in _PUBLIC_PATHS[1:]),
            *openapi.routes(),
            web.route("*", "/api/{version}/{rest:.+}", self._resource),
            web.route("*", "/apis/{group}/{version}/{rest:.+}", self._resource),
        ]

    async def _set_date(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(self._cluster.sim.now, usegmt=True)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return await self.respond(request, partial(handler, request))

    async def respond(self, request: Request, handle: Handle) -> web.StreamResponse:
        """Authorize a request and handle it; errors become responses."""
        with self._lockstep.request():
            try:
                if "rest" not in request.match_info:
                    self._access.authorize(self._user(request), Attributes(request.method.lower(), path=request.path))
                if _needs_etcd(request):
                    await self._await_leader(request)
                before, after = (0.0, 0.0) if _is_watch(request) else self.fault_injector.next_latency()
                await self._delay(request, before)
                response = await handle()
                await self._delay(request, after)
                return self._inject_faults(request, response)
            except ApiError as error:
                return json_response(error.status(), error.code, error.headers())
            except web.HTTPException as error:
                message = _NO_RESOURCE if error.status == 404 else error.reason
                api_error = ApiError(
                    error.status, message, "" if error.status == 404 else error.reason.replace(" ", "")
                )
                return json_response(api_error.status(), api_error.code)

    async def _await_leader(self, request: Request) -> None:
        """Wait while etcd has no leader. Raises ApiError after etcd's own time-out."""
        end = self._cluster.sim.now + _ETCD_TIMEOUT
        while (when := self._cluster.etcd.ready_at()) is None or when > self._cluster.sim.now:
            if self._cluster.sim.now >= end:
                raise ApiError(500, "etcdserver: request timed out")
            await self._delay(request, min(_ETCD_POLL if when is None else when - self._cluster.sim.now, _ETCD_TIMEOUT))

    async def _delay(self, request: Request, seconds: float) -> None:
        """Wait in simulated time."""
        is_background = "as=PartialObjectMetadataList" in request.headers.get("Accept", "")  # beside what a client does
        await self._lockstep.wait_until(self._cluster.sim.now + seconds, background=is_background)

    def _inject_faults(self, request: Request, response: web.StreamResponse) -> web.StreamResponse:
        """Corrupt the body of a response to GET as the enabled faults require."""
        if not self.fault_injector.enabled or request.method != "GET" or not isinstance(response, web.Response):
            return response
        if response.content_type != "application/json" or not isinstance(response.body, bytes):
            return response
        body = self.fault_injector.corrupt_body(msgspec.json.decode(response.body))
        return json_response(body, response.status, {"Content-Type": response.headers["Content-Type"]})

    def _user(self, request: Request) -> User:
        return self._access.authenticate(request.headers.get("Authorization", ""))

    async def _version(self, _: Request) -> web.Response:
        version = self._cluster.spec.git_version
        major, minor = version.removeprefix("v").split(".")[:2]
        return json_response({"major": major, "minor": minor, "gitVersion": version, "platform": "linux/amd64"})

    async def _healthz(self, _: Request) -> web.Response:
        return web.Response(text="ok")

    async def _resource(self, request: Request) -> web.StreamResponse:
        group_version, rest = group_version_of(request.match_info), request.match_info["rest"]
        user = self._user(request)
        if (kind := REVIEWS.get((group_version, rest))) and request.method == "POST":
            return json_response(review(kind, await read_body(request), user), 201)
        info = parse_request_info(group_version, rest)
        if info is None:
            self._access.authorize(user, Attributes(request.method.lower(), path=request.path))
            raise ApiError(404, _NO_RESOURCE)
        self._access.authorize(user, attributes_of(request.method, info, _is_watch(request)))
        if request.content_type == APPLY_PATCH and request.method == "PATCH" and not self._exists(info):
            self._access.authorize(user, attributes_of("POST", info))
        return await self._handler(info, request.method)(request, info)

    def _exists(self, info: RequestInfo) -> bool:
        return self._cluster.store.get(info.resource.plural, info.namespace, info.name) is not None

    def _handler(self, info: RequestInfo, method: str) -> ResourceHandler:
        """Handler of a request. Raises ApiError 404, 405 or 501."""
        plural, subresource = info.resource.plural, info.subresource
        if subresource and not (subresource == "status" and info.resource.has_status):
            if (plural, subresource) not in SUBRESOURCES:
                if (plural, subresource) in UNSIMULATED_SUBRESOURCES:
                    raise ApiError(501, f"the lab does not simulate {plural}/{subresource}")
                raise ApiError(404, _NO_RESOURCE)
            handler = self._subresource_handlers.get((subresource, method))
        else:
            handler = (self._object_handlers if info.name else self._collection_handlers).get(method)
        if handler is None:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        return handler


def _needs_etcd(request: Request) -> bool:
    """Whether etcd's members must agree: not for watches and for what the API server's cache answers."""
    is_cached = request.method == "GET" and request.query.get("resourceVersion") == "0"
    return "rest" in request.match_info and not is_cached and not _is_watch(request)


def _is_watch(request: Request) -> bool:
    return request.query.get("watch") in ("true", "1")

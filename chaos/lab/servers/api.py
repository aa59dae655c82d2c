"""The Kubernetes API server: who may ask, and which handler answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from email.utils import formatdate

import msgspec
from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.lockstep import Lockstep
from chaos.lab.servers.access import Access, Attributes, User, attributes
from chaos.lab.servers.applies import APPLY_PATCH
from chaos.lab.servers.documents import documents
from chaos.lab.servers.errors import ApiError
from chaos.lab.servers.messages import Handler, answer, read_body
from chaos.lab.servers.misbehaviours import Misbehaviours
from chaos.lab.servers.reads import Reads
from chaos.lab.servers.resources import NOT_SIMULATED, REVIEWS, SUBRESOURCES, Place, group_version_of, locate
from chaos.lab.servers.reviews import review
from chaos.lab.servers.service_proxy import ServiceProxy
from chaos.lab.servers.subresources import Subresources
from chaos.lab.servers.watches import Watches
from chaos.lab.servers.writes import Writes

_OPEN = ("/version", "/healthz", "/livez", "/readyz")
_NO_RESOURCE = "the server could not find the requested resource"
PlaceHandler = Callable[[web.Request, Place], Awaitable[web.StreamResponse]]


class ApiServer:
    """What the users of ``access`` ask for, they get if they may have it."""

    def __init__(self, cluster: Cluster, lockstep: Lockstep, access: Access, ring: int) -> None:
        self._cluster, self._lockstep, self._access = cluster, lockstep, access
        self.misbehaviours = Misbehaviours(cluster.spec.api_misbehaviours, cluster.spec.seed)
        self.watches = Watches(cluster.store, lockstep, self.misbehaviours, ring)
        reads, writes = Reads(cluster, self.watches), Writes(cluster)
        others = Subresources(cluster, lockstep, writes)
        self._of_subresources: dict[tuple[str, str], PlaceHandler] = {
            ("eviction", "POST"): others.evict,
            ("binding", "POST"): others.bind,
            ("scale", "GET"): others.get_scale,
            ("scale", "PUT"): others.put_scale,
            ("scale", "PATCH"): others.patch_scale,
            ("proxy", "GET"): ServiceProxy(cluster, lockstep).get,
        }
        self._of_collections: dict[str, PlaceHandler] = {
            "GET": reads.list_or_watch,
            "POST": writes.create,
            "DELETE": writes.delete_collection,
        }
        self._of_objects: dict[str, PlaceHandler] = {
            "GET": reads.get,
            "PUT": writes.replace,
            "PATCH": writes.patch,
            "DELETE": writes.delete,
        }

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=3 << 20)
        app.on_response_prepare.append(self._dated)
        app.router.add_get("/version", self._version)
        for path in _OPEN[1:]:
            app.router.add_get(path, self._healthy)
        app.router.add_routes(documents())
        app.router.add_route("*", "/api/{version}/{rest:.+}", self._resource)
        app.router.add_route("*", "/apis/{group}/{version}/{rest:.+}", self._resource)
        return app

    async def _dated(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(self._cluster.sim.now, usegmt=True)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        with self._lockstep.request():
            try:
                if "rest" not in request.match_info:
                    self._access.authorize(self._user(request), Attributes(request.method.lower(), path=request.path))
                return self._spoilt(request, await handler(request))
            except ApiError as error:
                return answer(error.status(), error.code, error.headers())
            except web.HTTPException as error:
                message = _NO_RESOURCE if error.status == 404 else error.reason
                refusal = ApiError(error.status, message, "" if error.status == 404 else error.reason.replace(" ", ""))
                return answer(refusal.status(), refusal.code)

    def _spoilt(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        """What is read, as the misbehaviours have it."""
        if not self.misbehaviours.on or request.method != "GET" or not isinstance(response, web.Response):
            return response
        if response.content_type != "application/json" or not isinstance(response.body, bytes):
            return response
        body = self.misbehaviours.answer(msgspec.json.decode(response.body))
        return answer(body, response.status, {"Content-Type": response.headers["Content-Type"]})

    def _user(self, request: web.Request) -> User:
        return self._access.authenticate(request.headers.get("Authorization", ""))

    async def _version(self, _: web.Request) -> web.Response:
        version = self._cluster.spec.kubernetes
        major, minor = version.removeprefix("v").split(".")[:2]
        return answer({"major": major, "minor": minor, "gitVersion": version, "platform": "linux/amd64"})

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        group_version, rest = group_version_of(request.match_info), request.match_info["rest"]
        user = self._user(request)
        if (kind := REVIEWS.get((group_version, rest))) and request.method == "POST":
            return answer(review(kind, await read_body(request), user), 201)
        place = locate(group_version, rest)
        if place is None:
            self._access.authorize(user, Attributes(request.method.lower(), path=request.path))
            raise ApiError(404, _NO_RESOURCE)
        watching = request.query.get("watch") in ("true", "1")
        self._access.authorize(user, attributes(request.method, place, watching))
        if request.content_type == APPLY_PATCH and request.method == "PATCH" and not self._is_there(place):
            self._access.authorize(user, attributes("POST", place))
        return await self._handler(place, request.method)(request, place)

    def _is_there(self, place: Place) -> bool:
        return self._cluster.store.get(place.resource.plural, place.namespace, place.name) is not None

    def _handler(self, place: Place, method: str) -> PlaceHandler:
        """Raises ApiError 404 or 405."""
        plural, subresource = place.resource.plural, place.subresource
        if subresource and not (subresource == "status" and place.resource.status):
            if (plural, subresource) not in SUBRESOURCES:
                if (plural, subresource) in NOT_SIMULATED:
                    raise ApiError(501, f"the lab does not simulate {plural}/{subresource}")
                raise ApiError(404, _NO_RESOURCE)
            handler = self._of_subresources.get((subresource, method))
        else:
            handler = (self._of_objects if place.name else self._of_collections).get(method)
        if handler is None:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        return handler

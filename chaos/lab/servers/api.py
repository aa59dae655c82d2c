"""The Kubernetes API server: requests in, calls of the cluster, JSON or a watch out."""

from __future__ import annotations

import base64
import binascii
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.eviction import ATTEMPTS, BudgetBusy
from chaos.lab.lockstep import Lockstep
from chaos.lab.servers.errors import STORE_ERRORS, ApiError, translate
from chaos.lab.servers.patches import json_patch, merge
from chaos.lab.servers.resources import EVICTION, REVIEW, Place, discovery, groups, locate
from chaos.lab.servers.selectors import Match, field_selector, label_selector
from chaos.lab.servers.watches import Watcher, Watches, stream
from chaos.lab.store import Object

_SNAPSHOTS = 64  # unfinished paged lists that are kept
_OPEN = ("/version", "/healthz", "/livez", "/readyz")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON response."""
    data = msgspec.json.encode(body)
    return web.Response(body=data, status=status, content_type="application/json", headers=headers)


def authenticate(request: web.Request, token: str) -> None:
    """Raises ApiError 401 for a wrong token; 403 for none, as an anonymous user may do nothing."""
    header = request.headers.get("Authorization", "")
    if not header:
        raise ApiError(403, f'forbidden: User "system:anonymous" cannot {request.method.lower()} path "{request.path}"')
    if header != f"Bearer {token}":
        raise ApiError(401, "Unauthorized")


class ApiServer:
    """``token`` is the bearer token of its only user, who may do everything."""

    def __init__(self, cluster: Cluster, lockstep: Lockstep, token: str, ring: int = 1000) -> None:
        self._cluster, self._lockstep, self._token = cluster, lockstep, token
        self.watches = Watches(cluster.store, ring, lockstep.emitted)
        self._snapshots: OrderedDict[int, list[Object]] = OrderedDict()
        self._next_snapshot = 0

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=3 << 20)
        app.router.add_get("/version", self._version)
        for path in _OPEN[1:]:
            app.router.add_get(path, self._healthy)
        app.router.add_get("/api", self._api)
        app.router.add_get("/apis", self._apis)
        app.router.add_get("/api/{version}", self._discover)
        app.router.add_get("/apis/{group}/{version}", self._discover)
        app.router.add_route("*", "/api/{version}/{rest:.+}", self._resource)
        app.router.add_route("*", "/apis/{group}/{version}/{rest:.+}", self._resource)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        with self._lockstep.request():
            try:
                if request.path not in _OPEN:
                    authenticate(request, self._token)
                return await handler(request)
            except ApiError as error:
                return answer(error.status(), error.code)
            except STORE_ERRORS as error:
                refusal = translate(error, creating=request.method == "POST")
                return answer(refusal.status(), refusal.code, refusal.headers())
            except web.HTTPException as error:
                reason = "NotFound" if error.status == 404 else error.reason.replace(" ", "")
                return answer(ApiError(error.status, error.reason, reason).status(), error.status)

    async def _version(self, _: web.Request) -> web.Response:
        version = self._cluster.spec.kubernetes
        major, minor = version.removeprefix("v").split(".")[:2]
        return answer({"major": major, "minor": minor, "gitVersion": version, "platform": "linux/amd64"})

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _api(self, _: web.Request) -> web.Response:
        return answer({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})

    async def _apis(self, _: web.Request) -> web.Response:
        return answer(groups())

    async def _discover(self, request: web.Request) -> web.Response:
        found = discovery(_group_version(request))
        if found is None:
            raise ApiError(404, "the server could not find the requested resource")
        return answer(found)

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        group_version, rest = _group_version(request), request.match_info["rest"]
        if (group_version, rest) == REVIEW and request.method == "POST":
            return answer({**await _body(request), "status": {"allowed": True}}, 201)
        place = locate(group_version, rest)
        if place is None:
            raise ApiError(404, "the server could not find the requested resource")
        if (place.resource.plural, place.subresource) == EVICTION and request.method == "POST":
            return await self._evict(request, place)
        if place.subresource and not (place.subresource == "status" and place.resource.status):
            raise ApiError(404, f"the lab does not simulate {place.resource.plural}/{place.subresource}")
        table = self._object_methods() if place.name else self._collection_methods()
        if request.method not in table:
            raise ApiError(405, "the server does not allow this method on the requested resource")
        return await table[request.method](request, place)

    def _collection_methods(self) -> dict[str, Callable[[web.Request, Place], Awaitable[web.StreamResponse]]]:
        return {"GET": self._list_or_watch, "POST": self._create, "DELETE": self._delete_collection}

    def _object_methods(self) -> dict[str, Callable[[web.Request, Place], Awaitable[web.StreamResponse]]]:
        return {"GET": self._get, "PUT": self._replace, "PATCH": self._patch, "DELETE": self._delete}

    def _find(self, place: Place) -> Object:
        obj = self._cluster.store.get(place.resource.plural, place.namespace, place.name)
        if obj is None:
            raise ApiError(404, f'{_qualified(place)} "{place.name}" not found')
        return obj

    async def _get(self, _: web.Request, place: Place) -> web.Response:
        return answer(place.resource.show(self._find(place)))

    async def _list_or_watch(self, request: web.Request, place: Place) -> web.StreamResponse:
        query = request.query
        matches = label_selector(query.get("labelSelector", ""))
        matches += field_selector(place.resource.plural, query.get("fieldSelector", ""))
        if query.get("watch") in ("true", "1"):
            return await self._watch(request, place, matches)
        return self._list(request, place, matches)

    async def _watch(self, request: web.Request, place: Place, matches: list[Match]) -> web.StreamResponse:
        query = request.query
        seconds = float(_number(query.get("timeoutSeconds", "0")))
        bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        response, transport = await stream(request)
        watcher = Watcher(place.resource, place.namespace, matches, bookmarks, transport)
        initial = query.get("sendInitialEvents") in ("true", "1")
        with self._lockstep.aside():
            await self.watches.serve(watcher, query.get("resourceVersion", ""), initial, seconds or None)
        if not transport.is_closing():
            await response.write_eof()
        return response

    def _list(self, request: web.Request, place: Place, matches: list[Match]) -> web.Response:
        limit = _number(request.query.get("limit", "0"))
        version, items = self._resume(request.query.get("continue", ""))
        if version == 0:
            stored = self._cluster.store.list(place.resource.plural, place.namespace)
            version, items = self._cluster.store.version, [obj for obj in stored if all(m(obj) for m in matches)]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if 0 < limit < len(items):
            metadata |= {"continue": self._keep(version, items[limit:]), "remainingItemCount": len(items) - limit}
            items = items[:limit]
        resource = place.resource
        head = {"kind": resource.kind + "List", "apiVersion": resource.group_version, "metadata": metadata}
        return answer({**head, "items": items})

    def _keep(self, version: int, rest: list[Object]) -> str:
        """A token for the rest of a list, at its resource version."""
        self._next_snapshot += 1
        self._snapshots[self._next_snapshot] = rest
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(json.dumps([self._next_snapshot, version]).encode()).decode()

    def _resume(self, token: str) -> tuple[int, list[Object]]:
        if not token:
            return 0, []
        try:
            key, version = json.loads(base64.urlsafe_b64decode(token))
        except (binascii.Error, ValueError, TypeError) as error:
            raise ApiError(400, "continue key is not valid") from error
        if key not in self._snapshots:
            raise ApiError(410, "The provided continue parameter is too old to display a consistent list result.")
        return version, self._snapshots[key]

    async def _create(self, request: web.Request, place: Place) -> web.Response:
        obj = _checked(await _body(request), place)
        if place.resource.namespaced and not place.namespace:
            raise ApiError(405, "create within a namespace")
        return answer(place.resource.show(self._cluster.create_object(place.resource.plural, obj)), 201)

    async def _replace(self, request: web.Request, place: Place) -> web.Response:
        return self._store(_checked(await _body(request), place), place)

    async def _patch(self, request: web.Request, place: Place) -> web.Response:
        patch, kind = await _body(request), request.content_type
        before = self._find(place)
        if kind == "application/json-patch+json":
            after = json_patch(before, patch)
        elif kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
            after = merge(before, patch, strategic="strategic" in kind)
            if "resourceVersion" not in (patch.get("metadata") or {}):
                after["metadata"].pop("resourceVersion", None)
        else:
            raise ApiError(415, f"the body of the request was in an unknown format: {kind}")
        return self._store(_checked(after, place), place)

    def _store(self, obj: Object, place: Place) -> web.Response:
        expect = obj["metadata"].get("resourceVersion") or None
        stored = self._cluster.update_object(place.resource.plural, obj, place.subresource, expect)
        return answer(place.resource.show(stored))

    async def _delete(self, request: web.Request, place: Place) -> web.Response:
        options = await _body(request) if request.can_read_body else {}
        grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        obj = self._cluster.delete_object(
            place.resource.plural,
            place.namespace,
            place.name,
            None if grace is None else _number(str(grace)),
            options.get("preconditions"),
        )
        if place.resource.plural == "pods" or self._cluster.store.get(
            place.resource.plural, place.namespace, place.name
        ):
            return answer(place.resource.show(obj))
        details = {"name": place.name, "kind": place.resource.plural, "uid": obj["metadata"]["uid"]}
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return answer({**head, "details": details})

    async def _evict(self, request: web.Request, place: Place) -> web.Response:
        body = await _body(request)
        if (body.get("metadata") or {}).get("name") != place.name:
            raise ApiError(400, "name in URL does not match name in Eviction object")
        options = body.get("deleteOptions") or {}
        dry_run = bool(options.get("dryRun") or request.query.get("dryRun"))
        for _ in range(ATTEMPTS - 1):
            try:
                self._cluster.evict_pod(place.namespace, place.name, options, dry_run)
                break
            except BudgetBusy as busy:
                await self._lockstep.wait_until(self._cluster.sim.now + busy.again)
        else:
            self._cluster.evict_pod(place.namespace, place.name, options, dry_run)
        return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    async def _delete_collection(self, request: web.Request, place: Place) -> web.Response:
        matches = label_selector(request.query.get("labelSelector", ""))
        matches += field_selector(place.resource.plural, request.query.get("fieldSelector", ""))
        options = await _body(request) if request.can_read_body else {}
        stored = list(self._cluster.store.list(place.resource.plural, place.namespace))
        chosen = [obj for obj in stored if all(match(obj) for match in matches)]
        for obj in chosen:
            metadata = obj["metadata"]
            self._cluster.delete_object(
                place.resource.plural,
                metadata.get("namespace", ""),
                metadata["name"],
                options.get("gracePeriodSeconds"),
            )
        head = {"kind": place.resource.kind + "List", "apiVersion": place.resource.group_version}
        return answer({**head, "metadata": {"resourceVersion": str(self._cluster.store.version)}, "items": chosen})


def _group_version(request: web.Request) -> str:
    group = request.match_info.get("group")
    version = request.match_info["version"]
    return f"{group}/{version}" if group else version


def _qualified(place: Place) -> str:
    return place.resource.plural + (f".{place.resource.group}" if place.resource.group else "")


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ApiError(400, f"{text[:40]!r} is not a whole number")
    return int(text)


async def _body(request: web.Request) -> Any:
    try:
        body = msgspec.json.decode(await request.read())
    except msgspec.DecodeError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict) and request.content_type != "application/json-patch+json":
        raise ApiError(400, "the body is not an object")
    return body


def _checked(obj: Any, place: Place) -> Object:
    """The object to store: of the URL's kind, name and namespace. Raises ApiError 400."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise ApiError(400, "metadata: Required value")
    for field, wanted in (("kind", place.resource.kind), ("apiVersion", place.resource.group_version)):
        if obj.get(field, wanted) != wanted:
            raise ApiError(400, f"{field} {obj[field]!r} does not match the expected {wanted!r}")
    for field, named in (("namespace", place.namespace), ("name", place.name)):
        if named and metadata.setdefault(field, named) != named:
            raise ApiError(400, f"the {field} of the object ({metadata[field]}) does not match the URL's ({named})")
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}

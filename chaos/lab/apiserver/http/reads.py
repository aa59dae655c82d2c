"""Read requests: get, list and watch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from chaos.lab.apiserver.http.list_options import ListOptions, parse_list_options
from chaos.lab.apiserver.http.messages import Request, get_object, json_response, parse_selectors
from chaos.lab.apiserver.http.pagination import Paginator
from chaos.lab.apiserver.http.representations import negotiate_representation
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.apiserver.http.selectors import Predicate
from chaos.lab.apiserver.http.watch_options import parse_bool, parse_watch_options
from chaos.lab.apiserver.http.watches import Selection, WatchServer
from chaos.lab.cluster import Cluster
from chaos.lab.objects.accessors import Object


class ReadHandlers:
    """Handlers of read requests."""

    def __init__(self, cluster: Cluster, watches: WatchServer) -> None:
        self._cluster, self._watches = cluster, watches
        self._paginator = Paginator(cluster.sim)

    async def get(self, request: Request, info: RequestInfo) -> web.Response:
        representation = negotiate_representation(request, info.resource, self._cluster.sim, is_list=False)
        return json_response(representation.show(get_object(self._cluster, info)))

    async def list_or_watch(self, request: Request, info: RequestInfo) -> web.StreamResponse:
        predicates = parse_selectors(request, info)
        if parse_bool(request.query, "watch"):
            return await self._watch(request, info, predicates)
        return await self._list(request, info, predicates)

    async def _watch(self, request: Request, info: RequestInfo, predicates: list[Predicate]) -> web.StreamResponse:
        options = parse_watch_options(request.query, self._cluster.spec.has_feature("watch-list"))
        representation = negotiate_representation(request, info.resource, self._cluster.sim, is_list=False)
        selection = Selection(info.resource.plural, representation, info.namespace, predicates)
        return await self._watches.serve(request, selection, options)

    async def _list(self, request: Request, info: RequestInfo, predicates: list[Predicate]) -> web.Response:
        options = parse_list_options(request.query)
        representation = negotiate_representation(request, info.resource, self._cluster.sim, is_list=True)
        if options.continue_token:
            version, items = self._paginator.resume(options.continue_token)
        else:
            version, stored = await self._state(info, options)
            items = [obj for obj in stored if all(predicate(obj) for predicate in predicates)]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if 0 < options.limit < len(items):
            metadata["continue"] = self._paginator.issue_token(version, items[options.limit :])
            if not predicates:  # with a selector the count is unknown, as in Kubernetes
                metadata["remainingItemCount"] = len(items) - options.limit
            items = items[: options.limit]
        return json_response(representation.show_list(items, metadata))

    async def _state(self, info: RequestInfo, options: ListOptions) -> tuple[int, Iterable[Object]]:
        """Version to list, and all objects at that version. Raises ApiError 410, 504."""
        store, plural = self._cluster.store, info.resource.plural
        await self._watches.wait_until_fresh(options.resource_version)
        if options.is_exact:
            return options.resource_version, self._watches.list_at(plural, info.namespace, options.resource_version)
        return store.version, store.list(plural, info.namespace)

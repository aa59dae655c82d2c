"""Reading requests: get, list and watch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.objects import Object
from chaos.lab.servers.forms import form_of
from chaos.lab.servers.list_options import ListOptions, list_options
from chaos.lab.servers.messages import answer, find, selection
from chaos.lab.servers.pages import Pages
from chaos.lab.servers.resources import Place
from chaos.lab.servers.selectors import Match
from chaos.lab.servers.watch_options import truth, watch_options
from chaos.lab.servers.watches import Selection, Watches


class Reads:
    """The handlers of reading requests."""

    def __init__(self, cluster: Cluster, watches: Watches) -> None:
        self._cluster, self._watches = cluster, watches
        self._pages = Pages(cluster.sim)

    async def get(self, request: web.Request, place: Place) -> web.Response:
        form = form_of(request, place.resource, self._cluster.sim, of_list=False)
        return answer(form.show(find(self._cluster, place)))

    async def list_or_watch(self, request: web.Request, place: Place) -> web.StreamResponse:
        matches = selection(request, place)
        if truth(request.query, "watch"):
            return await self._watch(request, place, matches)
        return await self._list(request, place, matches)

    async def _watch(self, request: web.Request, place: Place, matches: list[Match]) -> web.StreamResponse:
        options = watch_options(request.query)
        form = form_of(request, place.resource, self._cluster.sim, of_list=False)
        selected = Selection(place.resource.plural, form, place.namespace, matches)
        return await self._watches.serve(request, selected, options)

    async def _list(self, request: web.Request, place: Place, matches: list[Match]) -> web.Response:
        options = list_options(request.query)
        form = form_of(request, place.resource, self._cluster.sim, of_list=True)
        if options.token:
            version, items = self._pages.resume(options.token)
        else:
            version, stored = await self._state(place, options)
            items = [obj for obj in stored if all(match(obj) for match in matches)]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if 0 < options.limit < len(items):
            metadata["continue"] = self._pages.keep(version, items[options.limit :])
            if not matches:  # else the API server does not know
                metadata["remainingItemCount"] = len(items) - options.limit
            items = items[: options.limit]
        return answer(form.show_list(items, metadata))

    async def _state(self, place: Place, options: ListOptions) -> tuple[int, Iterable[Object]]:
        """The version that is shown, and all objects of the place then. Raises ApiError 410, 504."""
        store, plural = self._cluster.store, place.resource.plural
        await self._watches.fresh(options.version)
        if options.exact:
            return options.version, self._watches.at(plural, place.namespace, options.version)
        return store.version, store.list(plural, place.namespace)

"""Reading requests: get, list and watch."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chaos.lab.cluster import Cluster
from chaos.lab.servers.forms import form_of
from chaos.lab.servers.messages import answer, find, selection, whole_number
from chaos.lab.servers.pages import Pages
from chaos.lab.servers.resources import Place
from chaos.lab.servers.selectors import Match
from chaos.lab.servers.watch_options import truth, watch_options
from chaos.lab.servers.watches import Selection, Watches


class Reads:
    """The handlers of reading requests."""

    def __init__(self, cluster: Cluster, watches: Watches) -> None:
        self._cluster, self._watches = cluster, watches
        self._pages = Pages()

    async def get(self, request: web.Request, place: Place) -> web.Response:
        form = form_of(request, place.resource, self._cluster.sim, of_list=False)
        return answer(form.show(find(self._cluster, place)))

    async def list_or_watch(self, request: web.Request, place: Place) -> web.StreamResponse:
        matches = selection(request, place)
        if truth(request.query, "watch"):
            return await self._watch(request, place, matches)
        return self._list(request, place, matches)

    async def _watch(self, request: web.Request, place: Place, matches: list[Match]) -> web.StreamResponse:
        options = watch_options(request.query)
        form = form_of(request, place.resource, self._cluster.sim, of_list=False)
        selected = Selection(place.resource.plural, form, place.namespace, matches)
        return await self._watches.serve(request, selected, options)

    def _list(self, request: web.Request, place: Place, matches: list[Match]) -> web.Response:
        form = form_of(request, place.resource, self._cluster.sim, of_list=True)
        limit = whole_number(request.query.get("limit", "0"))
        if token := request.query.get("continue"):
            version, items = self._pages.resume(token)
        else:
            stored = self._cluster.store.list(place.resource.plural, place.namespace)
            version, items = self._cluster.store.version, [obj for obj in stored if all(m(obj) for m in matches)]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if 0 < limit < len(items):
            metadata |= {"continue": self._pages.keep(version, items[limit:]), "remainingItemCount": len(items) - limit}
            items = items[:limit]
        return answer(form.show_list(items, metadata))

"""Routes of discovery and OpenAPI."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chaos.lab.apiserver.http import discovery, openapi, openapi_v2
from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Request, json_response
from chaos.lab.apiserver.http.negotiation import negotiate, parse_accept
from chaos.lab.apiserver.http.resources import group_version_of


def routes() -> list[web.RouteDef]:
    """Routes of discovery and OpenAPI."""
    return [
        web.get("/api", _core),
        web.get("/apis", _groups),
        web.get("/apis/{group}", _group),
        web.get("/api/{version}", _resources),
        web.get("/apis/{group}/{version}", _resources),
        web.get("/openapi/v2", _swagger),
        web.get("/openapi/v3", _index),
        web.get("/openapi/v3/api/{version}", _document),
        web.get("/openapi/v3/apis/{group}/{version}", _document),
    ]


async def _core(request: Request) -> web.Response:
    versions = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    return _discovery_response(request, versions, core=True)


async def _groups(request: Request) -> web.Response:
    return _discovery_response(request, discovery.group_list(), core=False)


def _discovery_response(request: Request, plain: dict[str, Any], core: bool) -> web.Response:
    """Aggregated discovery if the client accepts it, else ``plain``."""
    clause = negotiate(request.headers.get("Accept", ""), "apidiscovery.k8s.io", ("v2",), ("APIGroupDiscoveryList",))
    if not clause.kind:
        return json_response(plain)
    return json_response(
        discovery.aggregated_discovery(core), headers={"Content-Type": discovery.AGGREGATED_CONTENT_TYPE}
    )


async def _group(request: Request) -> web.Response:
    return json_response(_require(discovery.group(request.match_info["group"])))


async def _resources(request: Request) -> web.Response:
    return json_response(_require(discovery.resource_list(group_version_of(request.match_info))))


async def _index(_: Request) -> web.Response:
    return json_response(openapi.index())


async def _document(request: Request) -> web.Response:
    name = group_version_of(request.match_info)
    _require(discovery.resource_list(name))
    return web.Response(body=openapi.document(name), content_type="application/json")


async def _swagger(request: Request) -> web.Response:
    header = request.headers.get("Accept", "")
    if any(clause.media_type == openapi_v2.MEDIA_TYPE for clause in parse_accept(header)):
        return web.Response(body=openapi_v2.swagger_protobuf(), content_type=openapi_v2.CONTENT_TYPE)
    negotiate(header, "", (), ())
    return web.Response(body=openapi.swagger(), content_type="application/json")


def _require(document: dict[str, Any] | None) -> dict[str, Any]:
    if document is None:
        raise ApiError(404, "the server could not find the requested resource")
    return document

"""Identity and version of a cluster, read from its API server."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import msgspec

from chaos.cluster.errors import from_response
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.errors import NodefallError
from chaos.core.ports import KubeApi

if TYPE_CHECKING:
    from chaos.cluster.client import ApiClient

T = TypeVar("T")


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Uid(msgspec.Struct):
    uid: str = ""


class _Namespace(msgspec.Struct):
    metadata: _Uid


def cluster_uid(api: KubeApi) -> str:
    """The uid of the namespace kube-system, which identifies a cluster. Raises NodefallError."""
    body = _get(api, "/api/v1/namespaces/kube-system")
    return _decode(body, _Namespace, "namespace kube-system").metadata.uid


def server_version(api: KubeApi) -> str:
    """A version such as ``v1.36.2``. Raises NodefallError."""
    return _decode(_get(api, "/version"), _Version, "/version").git_version


def server_is_loopback(api: ApiClient) -> bool:
    """True if every address of the API server is this machine's loopback, and no proxy is used."""
    parts = urlsplit(api.server)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return not api.uses_proxy and all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in found)


def _get(api: KubeApi, path: str) -> bytes:
    response = api.request("GET", path)
    if response.status != 200:
        raise from_response(response, path)
    return response.body


def _decode(body: bytes, type_: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except DECODE_ERRORS as error:
        raise NodefallError(f"{what}: invalid response: {error}") from error

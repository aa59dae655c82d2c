"""Consistent reads: which version of each object the API server knows now, without the objects themselves.

A list without a resourceVersion is as new as the store itself at its begin, so what a watch has not delivered of it is
lag. Only metadata is asked for: a tenth of the bytes, and no secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from chaos.cluster.errors import KubeRejected, from_response
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.ports import Response

METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"  # the Accept header
PAGE_SIZE = 5000  # objects of a page: about 5 MB
_GONE = 410


class MetadataApi(Protocol):
    """What a consistent read needs of the API server."""

    def metadata(self, path: str, query: Mapping[str, str]) -> Response:
        """GET a list as PartialObjectMetadataList. Raises KubeUnreachable."""


class _Item(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Item


class _Head(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _Head = msgspec.field(default_factory=_Head)
    items: list[_Object] | None = None


@dataclass(frozen=True, slots=True)
class ConsistentRead:
    """The state of a collection at some moment from ``begin`` (cluster time) on.

    ``version``: the list's resourceVersion; ``objects``: resourceVersions by uid.
    """

    begin: float
    version: str
    objects: Mapping[str, str]


_decode = msgspec.json.Decoder(_Page).decode


def read_version(api: MetadataApi, path: str) -> str:
    """The resourceVersion of the collection now, as cheap as can be. Raises KubeUnreachable, KubeRejected."""
    return _read_page(api, path, {"limit": "1"}).metadata.resource_version


def _read_page(api: MetadataApi, path: str, query: Mapping[str, str]) -> _Page:
    response = api.metadata(path, query)
    if response.status != 200:
        raise from_response(response, f"metadata of {path}")
    try:
        return _decode(response.body)
    except DECODE_ERRORS as error:
        raise KubeRejected(200, f"metadata of {path} cannot be decoded: {error}") from error


def read_versions(api: MetadataApi, path: str, begin: float) -> ConsistentRead:
    """Read the versions of all objects at ``path``. Raises KubeUnreachable, KubeRejected."""
    objects: dict[str, str] = {}
    query = {"limit": str(PAGE_SIZE)}
    while True:
        try:
            page = _read_page(api, path, query)
        except KubeRejected as error:
            if error.status != _GONE or "continue" not in query:
                raise
            objects, query = {}, {}  # everything is read in one piece
            continue
        objects.update((item.metadata.uid, item.metadata.resource_version) for item in page.items or ())
        if not page.metadata.continue_:
            return ConsistentRead(begin, page.metadata.resource_version, objects)
        query = {"limit": str(PAGE_SIZE), "continue": page.metadata.continue_}

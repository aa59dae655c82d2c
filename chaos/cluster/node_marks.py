"""Marks of pending undo on the Nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from chaos.cluster.response import status_message
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import node_path
from chaos.core.command import MERGE_PATCH
from chaos.core.errors import NodefallError
from chaos.core.node_mark import PREFIX, FoundMark, found_marks
from chaos.core.ports import KubeApi, Response

_NODES = "/api/v1/nodes"


class _Metadata(Struct):
    annotations: dict[str, str] | None = None


class _Head(Struct):
    metadata: _Metadata


class _List(Struct):
    items: list[msgspec.Raw] | None = None


def list_marks(kube: KubeApi) -> list[FoundMark]:
    """The marks of all Nodes. Raises NodefallError."""
    response = kube.request("GET", _NODES)
    if response.status != 200:
        raise NodefallError(_failure("the marks of Nodes cannot be read", response))
    try:
        items = msgspec.json.decode(response.body, type=_List).items or ()
        marked = [msgspec.json.decode(item) for item in items if _has_mark(item)]
    except DECODE_ERRORS as error:
        raise NodefallError(f"the marks of Nodes cannot be read: {error}") from error
    return [mark for node in marked for mark in found_marks(node)]


def remove_marks(kube: KubeApi, marks: Iterable[FoundMark]) -> list[str]:
    """Remove marks from Nodes that are unchanged since they were read; why some could not be removed."""
    problems = []
    for mark in marks:
        metadata = {"resourceVersion": mark.version, "annotations": {mark.key: None}}
        body = {"metadata": metadata}
        try:
            response = kube.request("PATCH", node_path(mark.node), body=body, content_type=MERGE_PATCH)
        except NodefallError as error:
            problems.append(f"the mark of {mark} stays: {error.message}")
            continue
        if response.status not in (200, 404, 409):  # 409: the Node has changed, so the mark may count again
            problems.append(_failure(f"the mark of {mark} stays", response))
    return problems


def _has_mark(item: msgspec.Raw) -> bool:
    annotations = msgspec.json.decode(item, type=_Head).metadata.annotations or {}
    return any(key.startswith(PREFIX) for key in annotations)


def _failure(what: str, response: Response) -> str:
    return f"{what}: the API server answered {response.status}: {status_message(response)}"

"""Content negotiation, as k8s.io/apiserver/pkg/endpoints/handlers/negotiation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.lab.apiserver.http.errors import ApiError

_JSON = ("application/json", "application/*", "*/*")


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of an Accept header: a media type with its parameters q, as (``kind``), g (``group``) and v."""

    media_type: str
    quality: float = 1.0
    kind: str = ""
    group: str = ""
    version: str = ""


def parse_accept(header: str) -> list[Clause]:
    """Clauses of an Accept header, by descending quality."""
    return sorted(_clauses(header or "*/*"), key=lambda clause: -clause.quality)


def _clauses(header: str) -> Iterator[Clause]:
    for part in header.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        params = dict(piece.partition("=")[::2] for piece in rest)
        try:
            quality = float(params.get("q", "1"))
        except ValueError:
            quality = 0.0
        yield Clause(media, quality, params.get("as", ""), params.get("g", ""), params.get("v", ""))


def negotiate(header: str, group: str, versions: tuple[str, ...], kinds: tuple[str, ...]) -> Clause:
    """First clause that can be served: plain JSON, or JSON as one of ``kinds``. Raises ApiError 406."""
    for clause in parse_accept(header):
        is_known = clause.group == group and clause.version in versions and clause.kind in kinds
        if clause.media_type in _JSON and (is_known or not (clause.kind or clause.group or clause.version)):
            return clause
    raise ApiError(406, "only the following media types are accepted: application/json")

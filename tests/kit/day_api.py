"""An API server that has only ConfigMaps, with resource versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from chaos.cluster.errors import KubeUnreachable
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube


class ConfigMaps(FakeKube):
    """``before_write`` and ``after_write`` are called around each write, for others. ``lost``: answers to lose."""

    def __init__(self) -> None:
        super().__init__({})
        self.items: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.before_write: Callable[[], object] = lambda: None
        self.after_write: Callable[[], object] = lambda: None
        self.lost = 0

    def annotate(self, name: str, halt: str) -> None:
        """As kubectl does."""
        self.items[name]["metadata"].setdefault("annotations", {})["nodefall.dev/halt"] = halt
        self._touch(self.items[name])

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        if method == "GET":
            return self._respond(200, {"items": [each for each in self.items.values() if self._selects(query, each)]})
        self.before_write()
        response = self._create(body) if method == "POST" else self._replace(path.rpartition("/")[2], body)
        self.after_write()
        if self.lost:
            self.lost -= 1
            raise KubeUnreachable("reset", "the connection was cut", sent=True)
        return response

    def _create(self, body: dict[str, Any]) -> Response:
        name = body["metadata"]["name"]
        if name in self.items:
            return self._respond(409, {"message": "it exists"})
        return self._store(name, body)

    def _replace(self, name: str, body: dict[str, Any]) -> Response:
        if name not in self.items:
            return self._respond(404, {"message": "not found"})
        if self.items[name]["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            return self._respond(409, {"message": "it was modified"})
        return self._store(name, body)

    def _store(self, name: str, body: dict[str, Any]) -> Response:
        self.items[name] = json.loads(json.dumps(body))
        self._touch(self.items[name])
        return self._respond(200, self.items[name])

    def _touch(self, item: dict[str, Any]) -> None:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)

    def _respond(self, status: int, body: Any) -> Response:
        return Response(status, json.dumps(body).encode(), {})

    def _selects(self, query: Mapping[str, str] | None, item: dict[str, Any]) -> bool:
        key, _, value = (query or {}).get("labelSelector", "").partition("=")
        labels = item["metadata"].get("labels", {})
        return key in labels and (not value or labels[key] == value)

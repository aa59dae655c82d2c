"""ConfigMaps with the states of game days."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from chaos.cluster.gameday_objects import DayRecord, list_days, read_day, write_day
from chaos.core.errors import NodefallError, Refused
from chaos.core.ports import Response
from tests.kit.day_api import ConfigMaps

NS = "kube-system"


def test_what_is_written_is_read() -> None:
    kube = ConfigMaps()
    assert read_day(kube, NS, "weekly") is None
    assert write_day(kube, NS, "weekly", "{}", None)
    record = read_day(kube, NS, "weekly")
    assert record == DayRecord("weekly", "{}", "1")
    assert write_day(kube, NS, "weekly", "[]", record)
    assert [(each.name, each.text) for each in list_days(kube, NS)] == [("weekly", "[]")]


def test_nothing_is_written_over_another_version() -> None:
    kube = ConfigMaps()
    assert write_day(kube, NS, "weekly", "{}", None)
    assert not write_day(kube, NS, "weekly", "other", None)
    record = read_day(kube, NS, "weekly")
    assert write_day(kube, NS, "weekly", "[]", record)
    assert not write_day(kube, NS, "weekly", "old", record)
    kube.items.clear()
    assert not write_day(kube, NS, "weekly", "old", record)  # deleted meanwhile


def test_an_annotation_asks_for_a_halt() -> None:
    kube = ConfigMaps()
    write_day(kube, NS, "weekly", "{}", None)
    kube.annotate("nodefall-gameday-weekly", "pager")
    record = read_day(kube, NS, "weekly")
    assert record is not None
    assert record.halt == "pager"
    assert write_day(kube, NS, "weekly", "{}", record)
    assert read_day(kube, NS, "weekly") == DayRecord("weekly", "{}", "3")


def test_objects_of_others_are_no_days() -> None:
    kube = ConfigMaps()
    labels = {"nodefall.dev/gameday": "weekly"}
    kube.items["other"] = {"metadata": {"name": "other", "labels": labels, "resourceVersion": "1"}, "data": {}}
    kube.items["nodefall-gameday-x"] = {"metadata": {"name": "nodefall-gameday-x", "labels": labels}, "data": None}
    assert read_day(kube, NS, "weekly") is None
    assert list_days(kube, NS) == [DayRecord("x", "", "")]


class _Broken(ConfigMaps):
    """Answers everything with one status."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__()
        self.response = Response(status, json.dumps(body).encode() if not isinstance(body, bytes) else body, {})

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        return self.response


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (403, {"message": "no"}, Refused, "the state of the game day cannot be read: no"),
        (500, {"message": "etcd"}, NodefallError, "cannot be read: 500: etcd"),
        (200, b"<html>", NodefallError, "invalid response"),
    ],
)
def test_errors_of_the_api_server(status: int, body: Any, error: type[NodefallError], message: str) -> None:
    with pytest.raises(error, match=message):
        read_day(_Broken(status, body), NS, "weekly")

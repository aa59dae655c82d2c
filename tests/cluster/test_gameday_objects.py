"""Jobs as they are read: their end, and why a pod does not run or has failed.

ConfigMaps with the states of game days.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from chaos.cluster.gameday_objects import (
    DayRecord,
    apply_object,
    create_job,
    delete_job,
    delete_labelled,
    list_days,
    list_jobs,
    read_day,
    write_day,
)
from chaos.core.errors import NodefallError, Refused
from chaos.core.ports import Response
from tests.kit.day_api import ConfigMaps
from tests.kit.fakes import FakeKube

JOBS, PODS = "/apis/batch/v1/namespaces/n/jobs", "/api/v1/namespaces/n/pods"
SELECTOR = "nodefall.dev/fleet=europe"
NS = "kube-system"


class Api(FakeKube):
    """Answers each method and path as set, and keeps what was sent."""

    def __init__(self, answers: Mapping[tuple[str, str], tuple[int, Any]]) -> None:
        super().__init__({})
        self.replies, self.requests = answers, list[tuple[str, str, Any]]()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        self.requests.append((method, path, body))
        status, answer = self.replies.get((method, path), (404, {"message": "not found"}))
        return Response(status, json.dumps(answer).encode(), {})


def job(*conditions: dict[str, str], **metadata: Any) -> dict[str, Any]:
    annotations = {"nodefall.dev/day": "d1", "nodefall.dev/plan-hash": "abc"}
    found = {"name": "j", "uid": "u", "annotations": annotations} | metadata
    return {"metadata": found, "status": {"conditions": list(conditions)}}


def failed(message: str = "by policy") -> dict[str, str]:
    return {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": message}


def pod(created: str = "1", **status: Any) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": created}, "status": status}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return pod(containerStatuses=[{"state": {"waiting": {"reason": reason, "message": message}}}])


def ended(code: int, message: str = "", created: str = "1") -> dict[str, Any]:
    return pod(created, containerStatuses=[{"state": {"terminated": {"exitCode": code, "message": message}}}])


UNSCHEDULED = pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}])


@pytest.mark.parametrize(
    ("found", "pods", "status", "reason"),
    [
        (job(), [], "active", ""),
        (job(), [waits("ErrImagePull", "no such image")], "active", "ErrImagePull: no such image"),
        (job(), [waits("ContainerCreating")], "active", "ContainerCreating"),
        (job(), [UNSCHEDULED], "active", "0/3 nodes are available"),
        (job({"type": "FailureTarget", "status": "True"}), [], "active", ""),
        (job({"type": "Complete", "status": "False"}), [], "active", ""),
        (job({"type": "Complete", "status": "True"}), [ended(0)], "complete", ""),
        (job(failed()), [], "failed", "by policy"),
        (job(failed()), [ended(4)], "failed", "exit code 4"),
        (job(failed()), [ended(4, "a line\nerror: refused\nhint: do\n")], "failed", "error: refused"),
        (job(failed()), [ended(2, "first\nlast\n\n")], "failed", "last"),
        (job(failed()), [ended(3, created="1"), ended(4, created="2")], "failed", "exit code 4"),
    ],
)
def test_a_job_is_read_with_its_reason(found: Any, pods: list[Any], status: str, reason: str) -> None:
    kube = Api({("GET", JOBS): (200, {"items": [found]}), ("GET", PODS): (200, {"items": pods})})
    (view,) = list_jobs(kube, "n", SELECTOR)
    assert (view.status, view.reason, view.day, view.plan_hash, view.uid) == (status, reason, "d1", "abc", "u")


def test_a_job_that_is_being_deleted_is_gone() -> None:
    deleted = job(deletionTimestamp="2026-11-23T00:00:00Z")
    kube = Api({("GET", JOBS): (200, {"items": [deleted]}), ("GET", PODS): (200, {"items": []})})
    assert list_jobs(kube, "n", SELECTOR) == []
    assert len(list_jobs(kube, "n", SELECTOR, with_deleted=True)) == 1


@pytest.mark.parametrize(("status", "error"), [(403, Refused), (401, Refused), (500, NodefallError)])
def test_what_cannot_be_read_is_no_empty_list(status: int, error: type[NodefallError]) -> None:
    with pytest.raises(error, match="cannot be read"):
        list_jobs(Api({("GET", JOBS): (status, {"message": "no"})}), "n", SELECTOR)


def test_a_job_is_created_once() -> None:
    body = {"metadata": {"name": "j", "namespace": "n"}}
    assert create_job(Api({("POST", JOBS): (201, {})}), body)
    assert not create_job(Api({("POST", JOBS): (409, {"message": "exists"})}), body)
    with pytest.raises(Refused, match="Job n/j cannot be created: quota"):
        create_job(Api({("POST", JOBS): (403, {"message": "quota"})}), body)


def test_exactly_one_job_is_deleted() -> None:
    kube = Api({("DELETE", f"{JOBS}/j"): (200, {})})
    delete_job(kube, "n", "j", "u")
    assert kube.requests[0][2]["preconditions"] == {"uid": "u"}
    delete_job(Api({}), "n", "j", "u")  # it is gone
    delete_job(Api({("DELETE", f"{JOBS}/j"): (409, {"message": "another"})}), "n", "j", "u")


ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s", "namespace": "n"}}


ACCOUNTS = "/api/v1/namespaces/n/serviceaccounts"


def test_a_field_of_someone_else_is_not_taken() -> None:
    apply_object(Api({("PATCH", f"{ACCOUNTS}/s"): (200, {})}), ACCOUNT)
    with pytest.raises(Refused, match="ServiceAccount n/s belongs to another program: conflict with kubectl"):
        apply_object(Api({("PATCH", f"{ACCOUNTS}/s"): (409, {"message": "conflict with kubectl"})}), ACCOUNT)


def test_only_what_has_the_label_is_deleted() -> None:
    item = {"metadata": {"name": "s", "uid": "u"}}
    kube = Api({("GET", ACCOUNTS): (200, {"items": [item]}), ("DELETE", f"{ACCOUNTS}/s"): (200, {})})
    assert delete_labelled(kube, [ACCOUNT], SELECTOR) == ["ServiceAccount/s"]
    assert [(method, path) for method, path, _ in kube.requests] == [("GET", ACCOUNTS), ("DELETE", f"{ACCOUNTS}/s")]
    assert kube.requests[1][2]["preconditions"] == {"uid": "u"}


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

"""Clusters of a fleet without a lab: an API server that stores objects, and a pod that does what the test says."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest
from msgspec.structs import replace

from chaos.app.fleet import agent, control, coordinator, member
from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.gameday_objects import read_day, write_day
from chaos.core.inventory import Inventory
from chaos.core.ports import Response
from chaos.engine.connection import ClusterConnection
from chaos.gameday.state import DayRun, DayState, RunKey, RunStatus, Verdict
from chaos.gameday.stored_day import decode, encode
from tests.kit.day_session import DayClock
from tests.kit.fakes import FakeKube

NAMESPACE = "kube-system"
_REVIEWS = "selfsubjectaccessreviews"


class FakeCluster(FakeKube):
    """An API server. ``verdicts``: of the entries of its day, run one after another, one for each look at its Job.

    ``is_gone``: it does not answer. ``denied``: verb and resource that the rights lack. ``refusal``: with which a pod
    fails before the day begins. ``stalls``: the day goes no further. ``is_busy``: the first entry of its day ends only
    with a halt.
    """

    server = "https://fake"

    def __init__(self, name: str, verdicts: list[Verdict]) -> None:
        super().__init__({})
        self.name, self.verdicts = name, verdicts
        self.uid = f"{name}-{uuid.uuid4()}"  # locks of this machine are by UID, and other tests run at the same time
        self.is_gone = self.stalls = self.is_busy = False
        self.denied: tuple[str, str] = ("", "")
        self.refusal = ""
        self.objects: dict[str, dict[str, Any]] = {}
        self.created: list[str] = []  # names of Jobs
        self.most_active = 0  # Jobs at the same time, over all clusters of the test
        self.fleet: list[FakeCluster] = [self]
        self._version = 0
        self._mutex = threading.RLock()

    @property
    def job(self) -> dict[str, Any] | None:
        return next((each for path, each in self.objects.items() if "/jobs/" in path), None)

    @property
    def is_active(self) -> bool:
        return self.job is not None and not self.job.get("status", {}).get("conditions")

    @property
    def day(self) -> DayState | None:
        record = read_day(self, NAMESPACE, "days")
        return decode(record.text) if record else None

    def kinds(self) -> set[str]:
        """Of the objects of fleets."""
        return {
            each["kind"] for each in self.objects.values() if "nodefall.dev/fleet" in each["metadata"].get("labels", {})
        }

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        if self.is_gone:
            raise KubeUnreachable("refused", f"{self.name} refuses the connection")
        with self._mutex:
            if method == "GET" and path.endswith("/jobs"):
                self._work()
            return self._answer(method, path, query or {}, body)

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Response:
        if path.endswith(_REVIEWS):
            attributes = body["spec"].get("resourceAttributes") or {}
            is_denied = (attributes.get("verb"), attributes.get("resource")) == self.denied
            return _respond(201, {"status": {"allowed": not is_denied}})
        if method == "POST":
            return self._create(path, body)
        found = self.objects.get(path)
        if method == "GET" and not (found or "/leases/" in path):
            items = [each for key, each in self.objects.items() if _is_in(key, path, each, query)]
            return _respond(200, {"items": items})
        if found is None and method != "PATCH":
            return _respond(404, {"message": "not found"})
        if method in ("GET", "DELETE"):
            return _respond(200, found if method == "GET" else self.objects.pop(path))
        return self._write_over(path, body, found)

    def _write_over(self, path: str, body: dict[str, Any], found: dict[str, Any] | None) -> Response:
        version = body["metadata"].get("resourceVersion")
        if version and found and version != found["metadata"]["resourceVersion"]:
            return _respond(409, {"message": "it was modified"})
        return self._store(path, body)

    def _create(self, path: str, body: dict[str, Any]) -> Response:
        path = f"{path}/{body['metadata']['name']}"
        if path in self.objects:
            return _respond(409, {"message": "it exists"})
        response = self._store(path, body)
        if "/jobs/" in path:
            self.created.append(body["metadata"]["name"])
            active = sum(each.is_active for each in self.fleet)
            self.most_active = max(self.most_active, active)
        return response

    def _store(self, path: str, body: dict[str, Any]) -> Response:
        self._version += 1
        self.objects[path] = json.loads(json.dumps(body))
        self.objects[path]["metadata"] |= {"resourceVersion": str(self._version), "uid": f"{path}-{self._version}"}
        return _respond(200, self.objects[path])

    def _work(self) -> None:
        """One step of the pod: begin the day, end an entry, end the Job."""
        job = self.job
        if job is None or not self.is_active or self.stalls:
            return
        day, wanted = self.day, job["metadata"]["annotations"]
        if self.refusal:
            self._end(self.refusal)
        elif day is None or day.day != wanted["nodefall.dev/day"]:
            runs = tuple(DayRun(RunKey(f"e{n}", "", 1), 1, "stop") for n in range(len(self.verdicts)))
            head = ("days", wanted["nodefall.dev/plan-hash"], 1, 1.0, "by-entry", 1, "pod", 1)
            self.write(DayState(wanted["nodefall.dev/day"], *head, runs), RunStatus.RUNNING)  # type: ignore[arg-type]
        elif day.halt and (self.is_busy or any(run.status is RunStatus.PENDING for run in day.runs)):
            self.write(day, RunStatus.DONE, "interrupted")
            self._end("halted")
        elif self.is_busy:
            return
        elif any(run.is_open for run in day.runs):
            self.write(day, RunStatus.DONE, self.verdicts[sum(not run.is_open for run in day.runs)])
        else:
            self._end("" if set(self.verdicts) == {"held"} else "exit code 1")

    def write(self, day: DayState, status: RunStatus, verdict: Verdict | None = None) -> None:
        """Store the day with its first open run changed, and the next one running."""
        index = next(n for n, run in enumerate(day.runs) if run.is_open)
        runs = list(day.runs)
        runs[index] = replace(runs[index], status=status, run=f"r{index}", verdict=verdict)
        write_day(self, NAMESPACE, "days", encode(replace(day, runs=tuple(runs))), read_day(self, NAMESPACE, "days"))

    def _end(self, message: str) -> None:
        assert self.job is not None
        type_ = "Failed" if message else "Complete"
        self.job["status"] = {"conditions": [{"type": type_, "status": "True", "message": message}]}


def _is_in(key: str, collection: str, item: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    wanted = [each.partition("=") for each in query.get("labelSelector", "").split(",") if each]
    labels = item["metadata"].get("labels") or {}
    matches = all(name in labels and (not equals or labels[name] == value) for name, equals, value in wanted)
    return key.rpartition("/")[0] == collection and matches


def _respond(status: int, body: Any) -> Response:
    return Response(status, json.dumps(body).encode(), {})


def connect_to(clusters: Mapping[str, FakeCluster], patch: pytest.MonkeyPatch) -> None:
    """Connect the fleet to these clusters, by the name of the inventory, and make it look at them all the time."""

    @contextmanager
    def connect(inventory: Inventory, *, seed: int | None = None) -> Iterator[ClusterConnection]:
        cluster = clusters[inventory.metadata.name]
        if cluster.is_gone:
            raise KubeUnreachable("refused", f"{cluster.name} refuses the connection")
        clock = DayClock()
        yield ClusterConnection(
            inventory, cast("Any", clock), cast("Any", cluster), cast("Any", None), cluster.uid, "v1.36.2"
        )

    for module in (control, coordinator, member):
        patch.setattr(module, "connect_cluster", connect)
    patch.setattr(agent, "PERIOD", 0.01)
    patch.setattr(coordinator, "_TICK", 0.02)
    patch.setattr(control, "_POLL", 0.02)

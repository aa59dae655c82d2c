"""When recorded changes were made: the API server's own times, answered requests and the order of resourceVersions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from chaos.lab.recorded.moments import at_their_moments, made_by_server
from chaos.lab.recorded.parser import parse
from chaos.lab.recorded.recording import Observation, Request, Requests, Stall

BASE = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
Body = dict[str, Any]


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(BASE + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pod(
    version: int,
    *,
    deleted: float | None = None,
    grace: int = 30,
    phase: str = "Running",
    evicted: float | None = None,
    created: float = 0,
    node: str = "n1",
) -> Body:
    """A pod whose deletion began at ``deleted``, and that was evicted at ``evicted``."""
    metadata: Body = {"name": "one", "namespace": "demo", "uid": "u1", "creationTimestamp": _stamp(created)}
    metadata |= {"resourceVersion": str(version)} if version else {}
    if deleted is not None:
        metadata |= {"deletionTimestamp": _stamp(deleted + grace), "deletionGracePeriodSeconds": grace}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    conditions = [] if evicted is None else [{**target, "lastTransitionTime": _stamp(evicted)}]
    spec = {"nodeName": node, "containers": []}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": conditions}}


def _owner(version: int, generation: int, name: str = "db") -> Body:
    metadata = {"name": name, "namespace": "demo", "uid": name, "resourceVersion": str(version)}
    return {"metadata": {**metadata, "generation": generation}, "spec": {}, "status": {"observedGeneration": 1}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, _pod(1, created=7.9, node=""), 7),
        (None, _pod(1, created=7), None),  # bound: a later version of it
        (_pod(1), _pod(2, deleted=20.4), 20),
        (_pod(1), _pod(2, deleted=20, phase="Succeeded"), None),  # seen with what came after
        (_pod(1, deleted=20), _pod(2, deleted=25, grace=0), 25),
        (_pod(1, deleted=20), _pod(2, deleted=20, grace=5), None),  # counts from the first deletion
        (_pod(1, deleted=20), _pod(2, deleted=20), None),
        (_pod(1), _pod(2, evicted=23.9), 23),
        (_pod(1), _pod(2, evicted=23, phase="Failed"), None),
        (_pod(1, evicted=23), _pod(2, evicted=23, deleted=24), 24),
        (_pod(1, evicted=23), _pod(2, evicted=23), None),
        (_pod(1), _pod(2, phase="Succeeded"), None),
    ],
)
def test_what_the_api_server_dates(before: Body | None, after: Body, expected: float | None) -> None:
    made = made_by_server(Observation(BASE + 60, "MODIFIED" if before else "ADDED", after), before)
    assert made == (None if expected is None else BASE + expected)


def _seen(*items: tuple[float, str, Body]) -> list[Observation]:
    return [Observation(BASE + at, type_, body) for at, type_, body in items]


STALL = Stall(BASE + 10, BASE + 100)


def _moved(
    observations: dict[str, list[Observation]], *requests: Request, kind: str = "pods", late: Stall = STALL
) -> list[float]:
    return [round(item.t - BASE, 2) for item in at_their_moments(observations, requests, [late])[kind]]


FIRST = (0.0, "LIST", _pod(1))


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([(20.3, "MODIFIED", _pod(10, deleted=20))], [0, 20.3]),
        ([(21.9, "MODIFIED", _pod(10, deleted=20))], [0, 21.9]),  # not late
        ([(50, "MODIFIED", _pod(10, deleted=20)), (50, "MODIFIED", _pod(12, deleted=20, phase="Failed"))], [0, 21, 50]),
        # what came before a dated write was made before it, and the kubelet's own write after
        ([(50, "MODIFIED", _pod(9, phase="x")), (50, "MODIFIED", _pod(10, deleted=20))], [0, 50, 50]),
        ([(50, "MODIFIED", _pod(9)), (50, "MODIFIED", _pod(10, deleted=20))], [0, 21, 21]),
        ([(50, "MODIFIED", _pod(0, deleted=20))], [0, 50]),  # without a resourceVersion
        ([(50, "MODIFIED", _pod(10, deleted=20)), (90, "DELETED", _pod(10, deleted=20))], [0, 21, 90]),  # by a list
        ([(50, "MODIFIED", _pod(10, deleted=20)), (51, "MODIFIED", _pod(3, phase="x"))], [0, 50, 51]),  # etcd restored
    ],
)
def test_late_changes_are_at_the_last_moment_at_which_they_can_have_been_made(
    pods: list[tuple[float, str, Body]], expected: list[float]
) -> None:
    created = Observation(BASE + 5, "ADDED", _pod(4, created=5, node=""))
    observations = {"pods": _seen(FIRST, *pods), "jobs": [created]}
    assert _moved(observations) == expected


@pytest.mark.parametrize("skew", [-3600, -2, 0, 2, 3600])
def test_the_clock_of_the_api_server_may_differ(skew: float) -> None:
    job = _pod(4, created=5 + skew, node="")
    pods = _seen(FIRST, (50, "MODIFIED", _pod(10, deleted=20 + skew)))
    assert _moved({"pods": pods, "jobs": _seen((5, "ADDED", job))}) == [0, 21]


@pytest.mark.parametrize(
    ("late", "set_by", "expected"),
    [
        (STALL, 0, [0, 21]),
        (Stall(BASE + 60, BASE + 90), 0, [0, 50]),  # without a stall a clock that was set is likelier than a late watch
        (STALL, -3600, [0, 50]),  # before the stall it would not have been late
    ],
)
def test_times_of_the_api_server_count_in_stalls(late: Stall, set_by: float, expected: list[float]) -> None:
    pods = _seen(FIRST, (50, "MODIFIED", _pod(10, deleted=20 + set_by)))
    created = _seen((5, "ADDED", _pod(4, created=5, node="")))
    assert _moved({"pods": pods, "jobs": created}, late=late) == expected


TIMES = ("creationTimestamp", "deletionTimestamp", "lastTransitionTime", "deletionGracePeriodSeconds")


@pytest.mark.parametrize("key", TIMES)
@pytest.mark.parametrize("value", [None, "", "x", "yesterday", "30"])
def test_what_is_no_time_shows_nothing(key: str, value: str | None) -> None:
    def spoil(body: Body) -> Body:
        for part in (body["metadata"], *body.get("status", {}).get("conditions", [])):
            part.update({key: value} if key in part else {})
        return body

    pods = _seen(FIRST, (50, "MODIFIED", spoil(_pod(10, evicted=20))), (60, "MODIFIED", spoil(_pod(12, deleted=20))))
    created = _seen((5, "ADDED", spoil(_pod(4, created=5, node=""))))
    times = _moved({"pods": pods, "jobs": created})
    assert times[0] == 0
    assert times[1] in (21, 50)
    assert times[2] in (21, 60)


def test_a_list_after_a_gap_is_not_in_the_order_of_writes() -> None:
    """Objects come by name: what is listed later was not made later."""
    new, old = _pod(30, phase="Failed"), _pod(10, deleted=20)
    new["metadata"] |= {"name": "a", "uid": "a"}
    pods = _seen(FIRST, (1, "ADDED", {**_pod(2), "metadata": {**new["metadata"], "resourceVersion": "2"}}))
    gap = _seen((50, "MODIFIED", new), (50, "MODIFIED", old))
    created = Observation(BASE + 5, "ADDED", _pod(4, created=5, node=""))
    found = at_their_moments({"pods": [*pods, *gap], "jobs": [created]}, [], [STALL])["pods"]
    assert [(item.t - BASE, item.object["metadata"]["name"]) for item in found] == [
        (0, "one"), (1, "a"), (21, "one"), (50, "a"),
    ]  # fmt: skip


def test_another_watch_bounds_a_change_by_its_receipt() -> None:
    pods = _seen(FIRST, (50, "MODIFIED", _pod(10, phase="Succeeded")))
    other = {"metadata": {"name": "n1", "uid": "l", "resourceVersion": "11"}, "spec": {}}
    observations = {"pods": pods, "nodes": _seen((30, "MODIFIED", other))}
    assert _moved(observations) == [0, 30]
    assert _moved(observations, kind="nodes") == [30]


@pytest.mark.parametrize(("late", "expected"), [(STALL, [0, 30, 30]), (Stall(BASE + 60, BASE + 90), [0, 30, 50])])
def test_the_order_of_writes_counts_in_stalls(late: Stall, expected: list[float]) -> None:
    """A recording that shows no stall there was altered, or a list after a gap."""
    other = _pod(11, phase="Failed")
    other["metadata"] |= {"uid": "other", "name": "other"}
    pods = _seen(FIRST, (30, "MODIFIED", other), (50, "MODIFIED", _pod(10, phase="Succeeded")))
    assert _moved({"pods": pods}, late=late) == expected


@pytest.mark.parametrize("kind", ["events", "leases"])
def test_an_etcd_of_their_own_numbers_differently(kind: str) -> None:
    pods = _seen(FIRST, (50, "MODIFIED", _pod(10, phase="Succeeded")))
    other = {"metadata": {"name": "n1", "uid": "l", "resourceVersion": "11"}, "spec": {}}
    assert _moved({"pods": pods, kind: _seen((30, "MODIFIED", other))}) == [0, 50]


def _entry(t: float, phase: str, params: Body | None = None, **more: Any) -> Body:
    body = {"step": "s", "phase": phase, "params": params or {}, **more}
    return {"t": BASE + t, "kind": "action", "type": "rollout-restart", "object": body}


ROLL = {"namespace": "workload", "kind": "StatefulSet", "name": "db"}
EVICTED = {"evidence": {"pods": [{"uid": "u1", "status": 201}]}}
REFUSED = {"evidence": {"pods": [{"uid": "u1", "status": 429}]}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([_entry(2, "begin", ROLL), _entry(5, "returned", delivery="answered"), _entry(61, "proved")], 5),
        ([_entry(2, "begin", ROLL), _entry(5, "returned", delivery="lost"), _entry(61, "proved")], 60),
        ([_entry(2, "begin", ROLL), _entry(5, "returned", delivery="answered")], 60),  # no proof that it changed it
        ([_entry(2, "begin", ROLL), _entry(5, "returned", delivery="answered"), _entry(55, "proved")], 60),
        ([_entry(5, "returned", delivery="answered"), _entry(61, "proved")], 60),  # of no known step
        ([_entry(2, "begin", {**ROLL, "name": "x"}), _entry(5, "returned", delivery="answered"),
          _entry(61, "proved")], 60),
        ([_entry(2, "begin", {**ROLL, "kind": "job"}), _entry(5, "returned", delivery="answered"),
          _entry(61, "proved")], 60),
    ],
)  # fmt: skip
def test_a_proved_request_was_carried_out_before_its_answer(entries: list[Body], expected: float) -> None:
    requests = Requests()
    for entry in entries:
        requests.add(entry, {"workload": "demo"})
    owners = _seen((0, "LIST", _owner(1, 1)), (60, "MODIFIED", _owner(2, 2)), (70, "MODIFIED", _owner(3, 2)))
    observations = {"statefulsets": owners}
    assert _moved(observations, *requests, kind="statefulsets") == [0, expected, 70]


@pytest.mark.parametrize(("evidence", "expected"), [(EVICTED, [0, 5, 60]), (REFUSED, [0, 60, 60]), ({}, [0, 60, 60])])
def test_an_answered_eviction_had_deleted_the_pod(evidence: Body, expected: list[float]) -> None:
    requests = Requests()
    returned = _entry(5, "returned", delivery="answered", **evidence)
    for entry in (_entry(2, "begin"), returned, _entry(61, "proved")):
        requests.add(entry, {})
    later = _pod(4, deleted=4, phase="Succeeded")
    pods = _seen((0, "LIST", _pod(1)), (60, "MODIFIED", _pod(2, deleted=4)), (60, "MODIFIED", later))
    # the API server's own time, 4 s, has no clock to compare with: all that it dated came late
    assert _moved({"pods": pods}, *requests) == expected


def _renewal(node: str, sent: float, came: float) -> Body:
    renewed = datetime.fromtimestamp(BASE + sent, UTC).isoformat().replace("+00:00", "Z")
    body = {"metadata": {"name": node, "uid": f"l-{node}"}, "spec": {"renewTime": renewed}}
    return {"t": BASE + came, "kind": "leases", "type": "MODIFIED", "object": body}


def test_user_operations_are_repeated_when_they_were_made() -> None:
    node = {"metadata": {"name": "n1", "uid": "n"}, "spec": {}, "status": {}}
    other = _pod(4, created=5, node="")
    other["metadata"] |= {"uid": "other", "name": "other"}
    times = [(10, 10), (20, 20), (30, 49.5), (40, 49.7), (49, 50)]  # a stall from 20 s on
    entries = [
        {"t": BASE, "kind": "meta", "type": "recording", "object": {}},
        *(_renewal(name, sent, came) for sent, came in times for name in ("n1", "n2")),
        {"t": BASE, "kind": "nodes", "type": "LIST", "object": node},
        {"t": BASE, "kind": "pods", "type": "LIST", "object": _pod(1)},
        {"t": BASE + 5, "kind": "pods", "type": "ADDED", "object": other},
        {"t": BASE + 50, "kind": "pods", "type": "MODIFIED", "object": _pod(10, evicted=23)},
    ]
    entries.sort(key=lambda entry: float(entry["t"]))
    operations = {item.action: round(item.t - BASE, 2) for item in parse(entries).operations}
    assert operations == {"user-create": 5, "user-evict": 24}

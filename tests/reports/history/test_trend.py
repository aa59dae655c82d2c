"""Trends: what is compared with what, and how text, JSON and page show it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.core.result import RunResult, StoredRun
from chaos.core.store.run_directory import EXPERIMENT as FILE
from chaos.core.store.run_history import read_run, read_runs
from chaos.core.verdict import Status, Verdict
from chaos.reports.history.trend import CLUSTER, EXPERIMENT, Group, Trend, trend
from chaos.reports.history.trend_page import trend_page
from chaos.reports.history.trend_text import trend_document, trend_text
from tests.kit.stored_runs import DAY, NOW, UID, result_of, store, stored, within

OTHER_UID = "aaaa1111-0000-4000-8000-000000000000"


def days(*seconds: float, **changes: Any) -> list[RunResult]:
    """A run a day, each of which measured one duration."""
    return [result_of(within(s), started=NOW + day * DAY, **changes) for day, s in enumerate(seconds)]


def of(runs: list[StoredRun], *mix: str) -> Trend:
    found = trend("e", runs, mix)
    assert found
    return found


def test_durations_are_in_the_order_of_the_runs(tmp_path: Path) -> None:
    found = of(stored(tmp_path, *days(3, 5, 4)))
    (each,) = found.expectations
    assert [point.seconds for point in each.points] == [3, 5, 4]
    assert [run.started for run in found.runs] == [NOW, NOW + DAY, NOW + 2 * DAY]
    assert each.spread
    assert (each.spread.first, each.spread.median, each.spread.third, each.bound) == (3.5, 4, 4.5, 40)


def test_a_duration_that_exceeds_its_bound_is_the_longest(tmp_path: Path) -> None:
    (each,) = of(stored(tmp_path, *days(3, 50, 60))).expectations
    assert [point.seconds for point in each.points] == [3, math.inf, math.inf]
    assert each.counts == {Status.HELD: 1, Status.VIOLATED: 2}
    assert each.spread
    assert each.spread.median == math.inf


def test_inconclusive_verdicts_are_points_without_a_duration(tmp_path: Path) -> None:
    unknown = Verdict("pods end", "pods", Status.INCONCLUSIVE, "blind", at=1, start=0, deadline=40, operator="within")
    runs = stored(tmp_path, result_of(within(3)), result_of(unknown, started=NOW + DAY))
    (each,) = of(runs).expectations
    assert [(point.status, point.seconds) for point in each.points] == [("held", 3), ("inconclusive", None)]
    assert each.spread
    assert each.spread.count == 1


def test_expectations_are_those_of_all_runs_in_the_order_of_the_newest(tmp_path: Path) -> None:
    first = result_of(within(1, name="gone"), within(2, name="b"), recovery=(within(9, name="r"),))
    last = result_of(within(3, name="a"), within(4, name="b"), abort=(within(9, name="x"),), started=NOW + DAY)
    found = of(stored(tmp_path, first, last))
    assert [(each.section, each.name, len(each.points)) for each in found.expectations] == [
        ("hypothesis", "a", 1),
        ("hypothesis", "b", 2),
        ("hypothesis", "gone", 1),
        ("recovery", "r", 1),
        ("abort", "x", 1),
    ]


def test_expectations_of_one_name_are_numbered(tmp_path: Path) -> None:
    results = [result_of(within(1), within(2), started=NOW + day) for day in range(3)]
    found = of(stored(tmp_path, *results))
    assert [(each.name, {point.seconds for point in each.points}) for each in found.expectations] == [
        ("pods end", {1}),
        ("pods end (2)", {2}),
    ]


def test_what_is_not_comparable_is_not_mixed(tmp_path: Path) -> None:
    store(tmp_path, result_of(within(1), started=NOW))
    store(tmp_path, result_of(within(2), started=NOW + 1, cluster_uid=OTHER_UID))
    store(tmp_path, result_of(within(3), started=NOW + 2, simulated=True))
    edited = store(tmp_path, result_of(within(4), started=NOW + 3))
    (edited / FILE).write_text("kind: Experiment # edited\n")
    store(tmp_path, result_of(within(5), started=NOW + 4))
    store(tmp_path, None, started=NOW + 5)
    runs = read_runs(tmp_path)
    found = of(runs)
    assert [run.started for run in found.runs] == [NOW, NOW + 4]
    assert found.group == Group(False, UID, runs[-1].experiment_hash)
    assert sorted((group.simulated, group.cluster[:4], count) for group, count in found.others.items()) == [
        (False, "6f0c", 1),
        (False, "aaaa", 1),
        (True, "stag", 1),
    ]
    assert found.unfinished == 1
    assert len(of(runs, CLUSTER).runs) == 3
    assert len(of(runs, EXPERIMENT).runs) == 3
    both = of(runs, CLUSTER, EXPERIMENT)
    assert len(both.runs) == 4
    assert [group.simulated for group in both.others] == [True], "real and simulated runs are never mixed"


def test_labs_of_one_inventory_are_one_cluster_whatever_their_seed_is(tmp_path: Path) -> None:
    uids = (UID, OTHER_UID)
    results = [result_of(within(1), started=NOW + n, simulated=True, cluster_uid=uid) for n, uid in enumerate(uids)]
    found = of(stored(tmp_path, *results))
    assert len(found.runs) == 2
    store(tmp_path, result_of(within(1), started=NOW + 5, simulated=True), inventory={"metadata": {"name": "other"}})
    assert len(of(read_runs(tmp_path)).runs) == 1


def test_no_run_with_a_result(tmp_path: Path) -> None:
    assert trend("e", []) is None
    assert trend("e", [read_run(store(tmp_path, None))]) is None


@pytest.fixture
def changed(tmp_path: Path) -> Trend:
    """Ten runs of 5 s, then ten of 9 s with another Kubernetes; one did not end in time."""
    before = days(*[5.0] * 10)
    after = [
        result_of(within(99 if day == 15 else 9.0), started=NOW + day * DAY, kubernetes="v1.37.0")
        for day in range(10, 20)
    ]
    never = Verdict("none starts", "pods-started", Status.VIOLATED, "b", "", "", 7, 0, 40, operator="never")
    last = result_of(within(9.0), never, started=NOW + 20 * DAY, kubernetes="v1.37.0")
    return of(stored(tmp_path, *before, *after, last))


def test_the_text(changed: Trend) -> None:
    lines = trend_text(changed, "utf-8")
    assert lines[0].startswith("e: 21 runs from 2026-11-21 03:35:33 UTC to 2026-12-11 03:35:33 UTC (cluster 6f0c1a2b, ")
    assert lines[2].split() == ["EXPECTATION", "HELD", "MEDIAN", "IQR", "BOUND", "OLDEST", "TO", "NEWEST"]
    assert re.split(r" {2,}", lines[3]) == [
        "pods end", "20 of 21", "true after 9s", "5s to 9s", "40s", "▁▁▁▁▁▁▁▁▁▁█████✗█████",
    ]  # fmt: skip
    assert re.split(r" {2,}", lines[4]) == ["none starts", "0 of 1", "failed after 7s", "✗"]
    assert lines[6] == (
        "changed: pods end: median 5s before, 9s from e-1796096133 "
        "(2026-12-01 03:35:33 UTC, Kubernetes v1.36.2 to v1.37.0) on (p = 0.0011)"
    )
    assert len(lines) == 7


def test_the_text_names_what_was_left_out(tmp_path: Path) -> None:
    store(tmp_path, result_of(within(2), cluster_uid=OTHER_UID))
    store(tmp_path, None, started=NOW + 1)
    store(tmp_path, result_of(within(2), simulated=True, started=NOW + 2))
    lines = trend_text(of(read_runs(tmp_path)), "utf-8")
    file = read_runs(tmp_path)[0].experiment_hash[:8]
    other = f"cluster aaaa1111, experiment {file}"
    assert lines[-3:] == [
        f"left out: 1 run of {other}; show with --cluster aaaa1111 --experiment-hash {file}",
        "left out: 1 run without a result",
        "This was a simulated cluster: it shows what the lab models, not what your cluster does.",
    ]


def test_a_median_over_the_bound(tmp_path: Path) -> None:
    lines = trend_text(of(stored(tmp_path, *days(3, 50, 60))), "utf-8")
    assert re.split(r" {2,}", lines[3])[2:4] == ["true after over 40s", "40s"]


def test_the_document(changed: Trend) -> None:
    document = json.loads(json.dumps(trend_document(changed), allow_nan=False))
    assert len(document["runs"]) == 21
    each = document["expectations"][0]
    assert (each["median"], each["measured"], each["operator"]) == (9.0, 21, "within")
    assert each["counts"] == {"held": 20, "violated": 1}
    assert each["points"][15] == {"run": 15, "status": "violated", "seconds": 40.0, "exceeded": True}
    (change,) = each["changes"]
    assert (change["run"], change["before"], change["after"]) == (10, 5.0, 9.0)
    assert document["group"]["cluster"] == UID


def test_an_infinite_median_is_null(tmp_path: Path) -> None:
    document = trend_document(of(stored(tmp_path, *days(50, 60))))
    assert document["expectations"][0]["median"] is None
    assert "Infinity" not in json.dumps(document)


def test_the_page(changed: Trend) -> None:
    page = trend_page(changed)
    assert page.count("<circle") == 22
    assert page.count('class="change"') == 1
    assert page.count('class="median"') == 3
    assert "not within 40s" in page
    assert "Kubernetes v1.36.2 to v1.37.0" in page
    assert "simulated" not in page


def test_the_page_is_offline_and_admits_no_script(changed: Trend) -> None:
    page = trend_page(changed)
    assert "<script" not in page
    assert "default-src &#x27;none&#x27;; style-src &#x27;sha256-" in page
    assert not re.search(r"(?:src|href|style)=|url\(|@import", page)


@pytest.mark.parametrize("payload", ["</style><script>alert(1)</script>", '"><img src=x onerror=y>', "\x1b[31m\u202e"])
def test_names_are_text(tmp_path: Path, payload: str) -> None:
    results = [
        msgspec.structs.replace(result, hypothesis=(within(1, name=payload),), kubernetes=payload, run=payload)
        for result in days(1, 2)
    ]
    runs = stored(tmp_path, *results)
    found = trend(payload, runs)
    assert found
    for text in (trend_page(found), "\n".join(trend_text(found, "utf-8"))):
        assert "\x1b" not in text
        assert "\u202e" not in text
    page = trend_page(found)
    assert "<script" not in page
    assert "<img" not in page


def test_an_empty_never_has_no_chart(tmp_path: Path) -> None:
    held = Verdict("none starts", "pods-started", Status.HELD, "b", "", "", 40, 0, 40, operator="never")
    page = trend_page(of(stored(tmp_path, result_of(held))))
    assert "<svg" not in page
    assert "nothing measured" in page

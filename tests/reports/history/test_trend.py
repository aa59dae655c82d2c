"""Spread, change points and sparklines of durations."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.core.result import RunResult, StoredRun
from chaos.core.store.run_directory import EXPERIMENT as FILE
from chaos.core.store.run_history import read_run, read_runs
from chaos.core.verdict import Status, Verdict
from chaos.reports.history.trend import (
    CLUSTER,
    EXPERIMENT,
    MAX_P,
    Group,
    Spread,
    Trend,
    change_points,
    pettitt,
    sparkline,
    spread,
    trend,
)
from chaos.reports.history.trend_page import trend_page
from chaos.reports.history.trend_text import trend_document, trend_text
from tests.kit.stored_runs import DAY, NOW, UID, result_of, store, stored, within

INF = math.inf
CASES = [
    ([], None),
    ([3.0], Spread(1, 3, 3, 3)),
    ([4.0, 1.0, 3.0, 2.0, 5.0], Spread(5, 2, 3, 4)),
    ([1.0, 2.0], Spread(2, 1.25, 1.5, 1.75)),
    ([1.0, 2.0, 3.0, INF], Spread(4, 1.75, 2.5, INF)),
    ([1.0, INF, INF], Spread(3, INF, INF, INF)),
    ([INF], Spread(1, INF, INF, INF)),
]


@pytest.mark.parametrize(("values", "expected"), CASES)
def test_quartiles(values: list[float], expected: Spread | None) -> None:
    assert spread(values) == expected


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30))
def test_they_are_those_of_the_standard_library(values: list[float]) -> None:
    found = spread(values)
    assert found
    expected = statistics.quantiles(values, n=4, method="inclusive")
    assert [found.first, found.median, found.third] == pytest.approx(expected, abs=1e-6)


INF = math.inf
# Annual flow of the Nile at Aswan from 1871 to 1970, in 10^8 m^3, which is known to have changed after 1898, the 28th
# value: Cobb, "The problem of the Nile", Biometrika 65 (1978), 243-251.
NILE = [
    *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140),
    *(1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969),
    *(831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759),
    *(781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890),
    *(744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
]


def test_the_nile() -> None:
    index, p = pettitt(NILE)
    assert index == 28
    assert p < 1e-6
    assert [change.index for change in change_points(NILE)] == [28]


NONE: list[list[float]] = [
    [],
    [1.0],
    [5.0] * 50,
    [1.0] * 5 + [9.0] * 5,  # too few
    [5.0, 5.1] * 20,
    [5.0] * 20 + [500.0] + [5.0] * 20,  # an outlier
    [5.0] * 20 + [5.3] * 20,  # less than a tenth
    [0.01] * 20 + [0.05] * 20,  # less than 0.1 s
    [0.0] * 20 + [0.09] * 20,
    [INF] * 30,
]


@pytest.mark.parametrize("values", NONE, ids=lambda values: f"{len(values)} values")
def test_no_change(values: list[float]) -> None:
    assert change_points(values) == ()


CHANGES: list[tuple[list[float], list[tuple[int, float, float]]]] = [
    ([5.0] * 6 + [9.0] * 6, [(6, 5, 9)]),  # the fewest
    ([5.0] * 20 + [9.0] * 8, [(20, 5, 9)]),
    ([9.0] * 20 + [5.0] * 20, [(20, 9, 5)]),
    ([5.0] * 12 + [INF] * 12, [(12, 5, INF)]),
    ([INF] * 12 + [5.0] * 12, [(12, INF, 5)]),
    ([0.0] * 12 + [2.0] * 12, [(12, 0, 2)]),
    ([1.0] * 20 + [5.0] * 20 + [9.0] * 20, [(20, 1, 5), (40, 5, 9)]),
    ([5.0] * 20 + [9.0] * 10 + [100.0] + [9.0] * 10, [(20, 5, 9)]),
]


@pytest.mark.parametrize(("values", "expected"), CHANGES, ids=lambda value: f"{len(value)}")
def test_changes(values: list[float], expected: list[tuple[int, float, float]]) -> None:
    found = change_points(values)
    assert [(change.index, change.before, change.after) for change in found] == expected
    assert all(change.p <= MAX_P for change in found)


def test_noise_changes_seldom() -> None:
    """In 3 of 100 series of noise at most, whatever their length: the approximation is conservative."""
    rng = random.Random(1)  # noqa: S311 - reproducible on purpose
    for count in (12, 20, 40):
        found = sum(bool(change_points([rng.uniform(1, 9) for _ in range(count)])) for _ in range(400))
        assert found <= 12, count


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e4) | st.just(INF), max_size=60))
def test_they_are_in_order_and_between_values(values: list[float]) -> None:
    found = [change.index for change in change_points(values)]
    assert found == sorted(set(found))
    assert all(0 < index < len(values) for index in found)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e4), min_size=2, max_size=40))
def test_the_statistic_is_that_of_the_definition(values: list[float]) -> None:
    """U(t) is the sum of sign(x_j - x_i) over i <= t < j."""
    count = len(values)
    sums = [abs(sum((b > a) - (b < a) for a in values[:t] for b in values[t:])) for t in range(1, count)]
    greatest = max(sums)
    expected = [sums.index(greatest) + 1, min(1.0, 2 * math.exp(-6 * greatest**2 / (count**3 + count**2)))]
    index, p = pettitt(values)
    assert [index, p] == (pytest.approx(expected) if greatest else [0, 1.0])


LINES: list[tuple[list[float | None], str, str]] = [
    ([], "utf-8", ""),
    ([0, 1, 2, 3, 4, 5, 6, 7], "utf-8", "▁▂▃▄▅▆▇█"),
    ([7, 0], "utf-8", "█▁"),
    ([5, 5], "utf-8", "▄▄"),
    ([None, 1, math.inf, 2], "utf-8", "?▁✗█"),
    ([None, math.inf], "utf-8", "?✗"),
    ([0, None, 7, math.inf], "ascii", "1?8x"),
]


def test_bounds_are_of_the_lowest_and_the_highest() -> None:
    assert sparkline([3, 3, 2], bounds=(0, 3)) == "██▆"
    assert sparkline([0, 9, -1], bounds=(0, 3)) == "▁█▁"


@pytest.mark.parametrize(("values", "encoding", "expected"), LINES)
def test_a_line(values: list[float | None], encoding: str, expected: str) -> None:
    assert sparkline(values, encoding) == expected


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

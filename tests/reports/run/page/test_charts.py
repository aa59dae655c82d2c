"""Charts of counts, with their bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.kube import EndpointConditions, EndpointSlice, Metadata, SliceEndpoint
from chaos.core.recording import ProbeResult, QueryResult, Series
from chaos.core.verdict import ValueLimit
from chaos.reports.run.page.charts import Chart, _thinned, charts
from tests.kit.small_timelines import node, timeline_of, workload


def slice_of(*ready: bool | None, name: str = "s-1") -> EndpointSlice:
    endpoints = [SliceEndpoint(conditions=EndpointConditions(r)) for r in ready]
    return EndpointSlice(Metadata(name, "ns", name, labels={"kubernetes.io/service-name": "s"}), "IPv4", endpoints)


def by_name(*lines: tuple[float, str, str, Any]) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts(timeline_of(*lines), 0)}


def test_ready_nodes_are_counted_and_the_first_lists_are_one_moment() -> None:
    chart = by_name(
        (10, "nodes", "LIST", node("True", name="a")),
        (10.4, "nodes", "LIST", node("True", name="b")),
        (20, "nodes", "MODIFIED", node("False", name="a")),
        (25, "nodes", "MODIFIED", node("Unknown", name="a")),
        (30, "nodes", "DELETED", node("True", name="b")),
        (40, "nodes", "MODIFIED", node("True", name="a")),
    )["Ready nodes"]
    assert list(chart.points) == [(10, 2), (20, 1), (30, 0), (40, 1)]
    assert chart.bounds == (("of", 2.0),)


def test_workloads_that_changed_have_a_chart_with_the_desired_replicas() -> None:
    found = by_name(
        (10, "deployments", "LIST", workload(3)),
        (10, "deployments", "LIST", workload(3, name="calm")),
        (10, "replicasets", "LIST", workload(3, name="web-1")),
        (20, "deployments", "MODIFIED", workload(1)),
        (21, "deployments", "MODIFIED", workload(1)),
        (22, "replicasets", "MODIFIED", workload(1, name="web-1")),
        (30, "deployments", "DELETED", workload(1)),
    )
    assert set(found) == {"ns/web available"}
    assert list(found["ns/web available"].points) == [(10, 3), (20, 1), (30, None)]
    assert found["ns/web available"].bounds == (("desired", 3.0),)


def test_greatest_loss_comes_first() -> None:
    names = [
        chart.name
        for chart in charts(
            timeline_of(
                (10, "deployments", "LIST", workload(3, name="a")),
                (10, "deployments", "LIST", workload(3, name="b")),
                (10, "daemonsets", "LIST", workload(3, name="c")),
                (20, "deployments", "MODIFIED", workload(2, name="a")),
                (20, "deployments", "MODIFIED", workload(0, name="b")),
                (20, "daemonsets", "MODIFIED", workload(0, name="c")),
            ),
            0,
        )
    ]
    assert names == ["ns/b available", "ns/a available", "ns/c available"]


def test_longest_loss_since_the_first_step_comes_first() -> None:
    found = charts(
        timeline_of(
            (10, "deployments", "LIST", workload(0, name="a")),
            (15, "deployments", "MODIFIED", workload(3, name="a")),
            (21, "deployments", "MODIFIED", workload(2, name="a")),
            (22, "deployments", "MODIFIED", workload(3, name="a")),
            (10, "deployments", "LIST", workload(3, name="b")),
            (21, "deployments", "MODIFIED", workload(2, name="b")),
            (40, "deployments", "MODIFIED", workload(3, name="b")),
        ),
        20,
    )
    assert [chart.name for chart in found] == ["ns/b available", "ns/a available"]


def test_ready_endpoints_of_all_slices_of_a_service() -> None:
    chart = by_name(
        (10, "endpointslices", "LIST", slice_of(True, None)),  # null means ready
        (10, "endpointslices", "LIST", slice_of(True, name="s-2")),
        (20, "endpointslices", "MODIFIED", slice_of(False, True)),
        (30, "endpointslices", "DELETED", slice_of(True, name="s-2")),
    )["ns/s ready endpoints"]
    assert list(chart.points) == [(10, 3), (20, 2), (30, 1)]


def test_probes_have_outcome_and_latency() -> None:
    found = by_name(
        (10, "probe", "shop", ProbeResult(True, 200, "", 0.05)),
        (11, "probe", "shop", ProbeResult(True, 200, "", 0.07)),
        (12, "probe", "shop", ProbeResult(False, None, "refused", 1.0)),
    )
    assert list(found["probe shop ok"].points) == [(10, 1), (12, 0)]
    assert list(found["probe shop latency"].points) == [(10, 50.0), (11, 70.0), (12, None)]


def test_series_of_queries() -> None:
    def response(*values: tuple[float, float | None], **labels: str) -> QueryResult:
        return QueryResult("q", [Series(labels, list(values))])

    found = by_name(
        (10, "prometheus", "errors", response((10, 0.5), job="a")),
        (11, "prometheus", "errors", response((11, None), job="a")),
        (12, "prometheus", "up", response((12, 1.0))),
    )
    assert list(found["errors {job=a}"].points) == [(10, 0.5), (11, None)]
    assert list(found["up"].points) == [(12, 1.0)]


@pytest.mark.parametrize(
    ("limit", "chart", "bound"),
    [
        (ValueLimit("probe", "shop", "latency", "at-most", 0.07), "probe shop latency", 70.0),
        (ValueLimit("query", "shop", "value", "at-least", 0.0), "shop {job=a}", 0.0),
        (ValueLimit("query", "shop", "value", "at-most", 5.0, {"job": "a"}), "shop {job=a}", 5.0),
        (ValueLimit("query", "shop", "value", "at-most", 5.0, {"job": "b"}), "", 5.0),
        (ValueLimit("query", "shop", "increase", "at-most", 5.0), "", 5.0),
        (ValueLimit("query", "other", "value", "at-most", 5.0), "", 5.0),
        (ValueLimit("probe", "other", "latency", "at-most", 5.0), "", 5.0),
        (ValueLimit("probe", "shop", "failing", "at-most", 5.0), "", 5.0),
        (ValueLimit("metric", "shop", "value", "at-most", 5.0), "", 5.0),
    ],
)
def test_a_limit_is_a_bound_of_the_chart_that_shows_what_it_limits(limit: ValueLimit, chart: str, bound: float) -> None:
    timeline = timeline_of(
        (10, "probe", "shop", ProbeResult(True, 200, "", 0.05)),
        (10, "prometheus", "shop", QueryResult("q", [Series({"job": "a"}, [(10, 0.5)])])),
    )
    found = {made.name: made.bounds for made in charts(timeline, 0, [limit, limit])}
    limited = {name: bounds for name, bounds in found.items() if name != "probe shop ok" and bounds}
    assert limited == ({chart: (("limit", bound),)} if chart else {})
    assert found["probe shop ok"] == (("ok", 1.0),)


def test_nothing_observed_has_no_charts() -> None:
    assert charts(timeline_of(), 0) == []


@pytest.mark.parametrize("count", [0, 1, 2000])
def test_few_points_stay(count: int) -> None:
    points = [(float(t), float(t % 7)) for t in range(count)]
    assert _thinned(points) == tuple(points)


@given(st.integers(2001, 9000), st.integers(0, 1999))
def test_many_points_keep_their_order_and_extremes(count: int, spike: int) -> None:
    points: list[tuple[float, float | None]] = [(float(t), 1.0) for t in range(count)]
    points[spike] = (float(spike), 99.0)
    points[spike + 1] = (float(spike + 1), None)
    thinned = _thinned(points)
    assert len(thinned) <= 3003
    assert list(thinned) == sorted(thinned, key=lambda point: point[0])
    assert (float(spike), 99.0) in thinned
    assert (float(spike + 1), None) in thinned

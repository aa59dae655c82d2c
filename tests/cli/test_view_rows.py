"""Rows of the live view, from entries of a timeline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from chaos.cli.run.view.state import ClusterState, WorkloadRow
from chaos.cli.run.view.tables import Cell, Column, shorten, table
from chaos.core.kube import OwnerReference
from tests.kit.live_views import NAMESPACE, Scene, daemonset, deployment, named
from tests.kit.small_timelines import pod

COLUMNS = (
    Column("NAME", least=4, takes_rest=True),
    Column("N", is_right=True),
    Column("WORDS", rank=1, least=6, takes_rest=True),
)
ROWS = [[Cell("worker-1"), Cell("12"), Cell("some words here")], [Cell("w"), Cell("3"), Cell("")]]


def state_of(scene: Scene) -> ClusterState:
    scene.state.cluster.update(scene.timeline)
    return scene.state.cluster


def test_only_targets_and_nodes_that_changed_after_the_first_step_are_affected() -> None:
    scene = Scene()
    scene.see("nodes", *(named("True", f"worker-{number}") for number in (1, 2, 3)))
    scene.see("nodes", named("False", "worker-2"))
    assert [row.name for row in state_of(scene).nodes.affected()] == ["worker-1"]
    scene.fire()
    scene.see("nodes", named("False", "worker-2"))  # a heartbeat
    assert [row.name for row in state_of(scene).nodes.affected()] == ["worker-1"]
    scene.at(7.0)
    scene.see("nodes", named("True", "worker-2"))
    scene.at(9.0)
    scene.see("nodes", named("True", "worker-3", cordoned=True))
    assert [row.name for row in state_of(scene).nodes.affected()] == ["worker-1", "worker-3", "worker-2"]
    assert (state_of(scene).nodes.ready, state_of(scene).nodes.count) == (3, 3)


def test_a_deleted_node_is_counted_no_more_and_comes_back() -> None:
    scene = Scene()
    scene.see("nodes", named("True", "worker-1"), named("True", "worker-2"))
    scene.fire()
    scene.see("nodes", named("True", "worker-1"), type_="DELETED")
    nodes = state_of(scene).nodes
    assert (nodes.affected()[0].ready, nodes.ready, nodes.count) == ("deleted", 1, 1)
    scene.see("nodes", named("True", "worker-1"), type_="ADDED")
    nodes = state_of(scene).nodes
    assert (nodes.affected()[0].ready, nodes.ready, nodes.count) == ("True", 2, 2)


def test_pods_are_counted_on_the_node_that_has_them() -> None:
    scene = Scene()
    scene.see("pods", pod("Running", on="worker-1", uid="a"), pod("Pending", on=None, uid="b"))
    row = state_of(scene).nodes.affected()[0]
    assert row.pods == 1
    scene.see("pods", pod("Running", on="worker-1", uid="a"), pod("Running", on="worker-1", uid="b"))
    assert (state_of(scene).nodes.affected()[0], row.pods) == (row, 2)
    scene.see("pods", pod("Failed", on="worker-1", uid="a"))
    scene.see("pods", pod("Running", on="worker-1", uid="b"), type_="DELETED")
    scene.see("pods", pod("Failed", on="worker-1", uid="a"), type_="DELETED")
    state_of(scene)
    assert row.pods == 0


@pytest.mark.parametrize(
    ("fact", "value", "held"),
    [
        ("inhibitor-holders", ["kubelet"], True),
        ("inhibitor-holders", ["NetworkManager"], False),
        ("inhibitor-kubelet", True, True),
        ("inhibitor-kubelet", False, False),
        ("boot-id", "x", None),
    ],
)
def test_the_kubelet_lock(fact: str, value: object, held: bool | None) -> None:
    scene = Scene()
    scene.see("host", value, type_=fact, on="worker-1")
    assert state_of(scene).nodes.affected()[0].holds_lock is held


def test_own_workloads_and_those_that_changed_lacking_ones_first() -> None:
    scene = Scene()
    scene.see(
        "deployments", deployment("web", 3, 3), deployment("other", 2, 2, "prod"), deployment("still", 1, 1, "prod")
    )
    scene.see("daemonsets", daemonset("proxy", 4, 4, "kube-system"))
    owned = deployment("web-7d4b9c", 3, 3)
    owned.metadata.owner_references = [OwnerReference("Deployment", "web", "u", True)]
    scene.see("replicasets", owned)
    assert [row.name for row in state_of(scene).workloads.affected()] == ["web"]
    scene.fire()
    scene.see("deployments", deployment("other", 1, 2, "prod"), deployment("still", 1, 1, "prod"))
    scene.see("daemonsets", daemonset("proxy", 3, 3, "kube-system"))
    rows = state_of(scene).workloads.affected()
    assert [(row.kind, row.name, row.ready, row.desired) for row in rows] == [
        ("deployment", "other", 1, 2),
        ("deployment", "web", 3, 3),
        ("daemonset", "proxy", 3, 3),
    ]
    assert (rows[1].is_own, rows[1].namespace) == (True, NAMESPACE)
    scene.see("deployments", deployment("other", 1, 2, "prod"), type_="DELETED")
    assert [row.name for row in state_of(scene).workloads.affected()] == ["web", "proxy"]


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ([], [None, None, None, None]),
        ([(0.0, 3)], [3, 3, 3, 3]),
        ([(15.0, 3)], [None, 3, 3, 3]),
        ([(0.0, 3), (22.0, 1), (25.0, 3)], [3, 3, 1, 3]),
        ([(0.0, 3), (20.0, 2)], [3, 2, 2, 2]),
        ([(0.0, 3), (39.0, 0)], [3, 3, 3, 0]),
        ([(0.0, 3), (41.0, 0)], [3, 3, 3, 3]),
    ],
)
def test_a_sparkline_misses_no_dip(changes: list[tuple[float, int]], values: list[float | None]) -> None:
    row = WorkloadRow("deployment", "ns", "web")
    row.changes.extend(changes)
    assert row.samples(0.0, 40.0, 4) == values


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, ["NAME       N  WORDS", "worker-1  12  some words here", "w          3  "]),
        (22, ["NAME      N  WORDS", "worker…  12  some wor…", "w         3"]),
        (18, ["NAME    N  WORDS", "work…  12  some w…", "w       3"]),
        (14, ["NAME       N", "worker-1  12", "w          3"]),
        (8, ["NAME   N", "wor…  12", "w      3"]),
    ],
)
def test_widths(width: int, lines: list[str]) -> None:
    shown = [line.plain for line in table(COLUMNS, ROWS, width)]
    assert [line.rstrip() for line in shown] == [line.rstrip() for line in lines]


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("ab cd", 4, "ab…"), ("x", 0, "")],
)
def test_shorten(text: str, width: int, short: str) -> None:
    assert shorten(text, width) == short


@given(st.lists(st.lists(st.text(max_size=30), min_size=3, max_size=3), max_size=5), st.integers(10, 80))
def test_no_line_is_too_wide(rows: list[list[str]], width: int) -> None:
    printable = [[Cell(text if text.isprintable() else "?") for text in row] for row in rows]
    assert all(cell_len(line.plain) <= width for line in table(COLUMNS, printable, width))

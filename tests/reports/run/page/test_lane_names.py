"""Short names of lanes: unambiguous, without the run's namespace and the template's hash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.reports.run.page.lane_names import own_namespace, short_names
from chaos.reports.run.page.timeline_lanes import Lane, Span


def pod(name: str, *, begin: float = 0.0, template: str = "", changed: bool = False) -> Lane:
    namespace = name.rpartition("/")[0]
    spans = (Span(begin, begin + 1, "ready", "", 0),)
    return Lane("pod", f"{name}-{begin}", name, "n1", changed, spans, (), (), namespace, "", template)


def node(name: str) -> Lane:
    return Lane("node", name, name, name, False, ())


@pytest.mark.parametrize(
    ("lanes", "short"),
    [
        ([node("worker-2")], ["worker-2"]),
        ([pod("demo/web-6749b54fc9-x8z2k", template="6749b54fc9")], ["web-x8z2k"]),
        ([pod("demo/web-6749b54fc9-x8z2k")], ["web-6749b54fc9-x8z2k"]),
        ([pod("kube-system/agent-abcde")], ["kube-system/agent-abcde"]),
        # Two templates whose pods would have one short name keep their full names.
        (
            [pod("demo/web-aaa-x", template="aaa"), pod("demo/web-bbb-x", template="bbb"), pod("demo/web-x")],
            ["demo/web-aaa-x", "demo/web-bbb-x", "demo/web-x"],
        ),
        # Pods of one name are numbered in the order in which they appeared, whatever the order of the lanes.
        ([pod("demo/db-0", begin=9), pod("demo/db-0", begin=1), pod("demo/db-1")], ["db-0 #2", "db-0 #1", "db-1"]),
        ([pod("demo/web-1", template="1")], ["web-1"]),
        ([], []),
    ],
)
def test_short_names(lanes: list[Lane], short: list[str]) -> None:
    assert short_names(lanes, "demo") == short


def test_without_a_namespace_to_leave_out_names_are_full() -> None:
    assert short_names([pod("demo/a")], "") == ["demo/a"]


@pytest.mark.parametrize(
    ("meta", "lanes", "namespace"),
    [
        ({"workload": "run-1"}, [], "run-1"),
        ({"workload": 7}, [pod("demo/a", changed=True)], "demo"),
        ({}, [pod("a/x", changed=True), pod("b/y", changed=True), pod("b/z", changed=True)], "b"),
        ({}, [pod("a/x")], ""),
        ({}, [], ""),
    ],
)
def test_own_namespace(meta: dict[str, object], lanes: list[Lane], namespace: str) -> None:
    assert own_namespace(meta, lanes) == namespace


NAMES = st.from_regex(r"(a|demo)/(web|db)(-(aa|b))?-[xy0]", fullmatch=True)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["", "aa", "b"])), max_size=12))
def test_no_two_pods_share_a_short_name(found: list[tuple[str, str]]) -> None:
    lanes = [pod(name, begin=float(i), template=template) for i, (name, template) in enumerate(found)]
    short = short_names(lanes, "demo")
    assert len(set(short)) == len(lanes)

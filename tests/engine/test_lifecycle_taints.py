"""Taints that Kubernetes put on a node because of a fault are waited for, or named."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from chaos.core.errors import NodefallError
from chaos.core.ports import Response
from chaos.engine.waits import TAINT_SECONDS, await_taints, lifecycle_taints, read_taints
from tests.kit.fakes import FakeClock, FakeKube

PRESSURE = "node.kubernetes.io/disk-pressure:NoSchedule"
OWN = ("node.kubernetes.io/out-of-service:NoExecute", "example.com/team:NoSchedule")
PATH = "/api/v1/nodes/n1"


def node(*taints: str) -> Response:
    listed = [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints]
    return Response(200, json.dumps({"metadata": {"name": "n1"}, "spec": {"taints": listed}}).encode(), {})


def test_only_taints_of_controllers_count() -> None:
    assert lifecycle_taints(FakeKube({PATH: node(PRESSURE, *OWN)}), "n1") == {PRESSURE}
    assert lifecycle_taints(FakeKube({}), "n1") == frozenset(), "there is no such node"
    with pytest.raises(NodefallError):
        lifecycle_taints(FakeKube({PATH: Response(500, b"", {})}), "n1")
    assert read_taints(FakeKube({PATH: Response(500, b"", {})}), ["n1"]) == {}


@pytest.mark.parametrize(
    ("after", "seconds", "expected"),
    [
        (100, TAINT_SECONDS, []),
        (10_000, TAINT_SECONDS, [f"taint {PRESSURE} of n1: Kubernetes has not removed it yet"]),
        (100, 0, [f"taint {PRESSURE} of n1: Kubernetes has not removed it yet"]),
    ],
)
def test_they_are_waited_for(after: float, seconds: float, expected: list[str]) -> None:
    kube, clock = FakeKube({PATH: node(PRESSURE)}), FakeClock()
    clock.agenda.append((clock.now() + after, lambda: kube.answers.update({PATH: node()})))
    waits: list[Sequence[str]] = []
    assert await_taints(kube, clock, {"n1": frozenset()}, ["n1"], seconds, waits.append) == expected
    assert bool(waits) is bool(seconds), "each pause is reported"
    assert clock.slept <= seconds + 2


def test_taints_from_before_the_fault_are_none_of_it() -> None:
    kube, clock = FakeKube({PATH: node(PRESSURE)}), FakeClock()
    assert await_taints(kube, clock, {"n1": frozenset({PRESSURE})}, ["n1"], TAINT_SECONDS) == []
    assert await_taints(kube, clock, {}, ["n1"], TAINT_SECONDS) == [], "what was before is unknown"
    assert clock.slept == 0

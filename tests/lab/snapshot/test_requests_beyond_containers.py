"""What pods demand beyond their containers takes room in the copy of a cluster, too."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.store import clone
from chaos.lab.objects import requests_of
from chaos.lab.snapshot.unmodelled import Simplifier, fold_requests

Object = dict[str, Any]


def container(cpu: str = "", memory: str = "", **more: Any) -> Object:
    amounts = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": "c", "resources": {"requests": amounts}, **more}


SIDECAR = container("300m", "1Gi", restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        ({"containers": [container("100m"), container("200m")]}, 300, 0),
        ({"containers": [container("100m")], "initContainers": [container("50m", "2Gi")]}, 100, 2 << 30),
        ({"containers": [container("100m")], "initContainers": [SIDECAR]}, 400, 1 << 30),
        # the one that runs once runs beside the sidecar before it, not beside the one behind it
        ({"containers": [container("100m")], "initContainers": [SIDECAR, container("1"), SIDECAR]}, 1300, 2 << 30),
        ({"containers": [container()], "overhead": {"cpu": "250m", "memory": "120Mi"}}, 250, 120 << 20),
        ({"containers": [container("100m")], "resources": {"requests": {"cpu": "2"}}}, 2000, 0),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}], "overhead": {"cpu": "1"}}, 2000, 0),
        ({"containers": [{"name": "c"}], "overhead": {"cpu": "much"}}, 0, 0),
    ],
    ids=["containers", "init", "sidecar", "order", "overhead", "whole", "limits", "no-quantity"],
)
def test_the_first_container_demands_what_the_pod_does(spec: Object, cpu: int, memory: int) -> None:
    new = clone(spec)
    fold_requests(new)
    assert requests_of({"spec": new}) == {"cpu": cpu, "memory": memory}
    fold_requests(again := {**clone(new), "initContainers": []})
    assert again["containers"] == new["containers"]


def test_what_only_some_clusters_have_is_listed() -> None:
    gpu = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    simplifier = Simplifier()
    simplifier.simplify_pod(
        {"containers": [gpu], "runtimeClassName": "kata", "readinessGates": [{"conditionType": "a"}]}
    )
    assert simplifier.lines() == [
        "readiness gates (1): pods are ready without them",
        "requests of other resources than cpu and memory (1): pods are placed without them",
        "runtime classes (1): new pods have no overhead",
    ]

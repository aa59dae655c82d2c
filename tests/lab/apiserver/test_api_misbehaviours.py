"""Faults of the API server, as clients receive them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_args

import pytest

from chaos.lab.http import fault_injection
from chaos.lab.http.fault_injection import STREAM_FAULTS, CorruptedRepresentation, FaultInjector
from chaos.lab.http.reads import ObjectRepresentation
from chaos.lab.http.resources import RESOURCES
from chaos.lab.spec import ApiMisbehaviour, LabSpec, SpecError

EVENT = {"metadata": {"name": "e", "uid": "u"}, "eventTime": "now", "reportingComponent": "kubelet"}
POD = {"metadata": {"name": "p", "uid": "u", "labels": {}}, "spec": {"containers": []}}


def shown(plural: str, obj: dict[str, Any], *switches: ApiMisbehaviour) -> dict[str, Any]:
    resource = RESOURCES["v1", plural]
    return dict(CorruptedRepresentation(ObjectRepresentation(resource), FaultInjector(switches)).show(obj))


def test_every_fault_is_documented() -> None:
    for name in get_args(ApiMisbehaviour):
        assert f"``{name}``" in str(fault_injection.__doc__)


def test_objects() -> None:
    assert shown("pods", POD) == {"kind": "Pod", "apiVersion": "v1", **POD}
    assert shown("pods", POD, "null-lists")["spec"] == {"containers": None}
    assert shown("events", EVENT, "legacy-events")["eventTime"] is None
    assert shown("pods", EVENT, "legacy-events")["eventTime"] == "now"
    note = shown("pods", POD, "line-breaks")["metadata"]["annotations"]["example.com/note"]
    assert len(note.splitlines()) == 4
    bookmark = shown("pods", {"metadata": {"resourceVersion": "7"}}, "null-bookmarks")
    assert bookmark["spec"]["containers"] is None
    assert bookmark["metadata"]["resourceVersion"] == "7"


def test_faults_are_repeatable_and_only_enabled_ones_occur() -> None:
    first, second = (FaultInjector(["cut", "torn", "line-breaks"], seed=3) for _ in range(2))
    struck = [first.next_fault() for _ in range(1000)]
    assert struck == [second.next_fault() for _ in range(1000)]
    assert set(struck) == {"", "cut", "torn"}
    assert {FaultInjector(sorted(STREAM_FAULTS), seed).next_fault() for seed in range(2000)} == {"", *STREAM_FAULTS}
    assert not any(FaultInjector(["cut"]).should_compact() for _ in range(50))


def test_chunks_add_up_to_the_line() -> None:
    bad = FaultInjector(["split"])
    line = json.dumps({"note": "äöü"}, ensure_ascii=False).encode() + b"\n"
    pieces = [bad.split_chunks(line) for _ in range(50)]
    assert all(b"".join(found) == line and all(found) for found in pieces)
    assert max(len(found) for found in pieces) > 2


def test_lists_and_watches_of_a_lab_are_corrupted(make_lab: Callable[..., Any]) -> None:
    lab = make_lab("--misbehave", "line-breaks", "--misbehave", "null-lists", apiMisbehaviours=["end-at-once"])
    status, nodes = lab.api("GET", "/api/v1/nodes")
    assert (status, nodes["kind"]) == (200, "NodeList")
    for node in nodes["items"]:
        assert "\u0085" in node["metadata"]["annotations"]["example.com/note"]
        assert node["status"]["images"] == [{"names": None, "sizeBytes": 1}]
    assert list(lab.watch("/api/v1/nodes?watch=true")) == []
    assert lab.api("GET", "/api/v1/nodes/none")[0] == 404
    assert lab.api("GET", "/version")[1]["major"] == "1"
    assert lab.api("GET", "/version/") == lab.api("GET", "/version")


def test_unknown_faults_are_rejected() -> None:
    with pytest.raises(SpecError, match="apiMisbehaviours"):
        LabSpec.from_json(b'{"nodes": [{"name": "a"}], "apiMisbehaviours": ["explode"]}')
    command = [sys.executable, "-m", "chaos.lab", "--misbehave", "explode"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "invalid choice: 'explode'" in ended.stderr

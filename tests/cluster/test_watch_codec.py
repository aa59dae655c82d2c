"""Bytes to lines to objects, also with the objects of a real cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.cluster.observers.base import Backoff
from chaos.cluster.watch_codec import DECODE_ERRORS, TruncatedLineError, WatchCodec, split_lines
from chaos.core.decode import decode
from chaos.core.kube import RESOURCES
from chaos.core.recording import RecordingEntry, moved

RECORDINGS = Path(__file__).parent.parent / "recordings"
LINE = st.binary(min_size=1, max_size=40).filter(lambda b: b"\n" not in b and b.strip() != b"")


@given(st.lists(LINE, max_size=12), st.data())
def test_lines_do_not_depend_on_how_they_were_cut_up(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    edges = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(edges)]
    assert list(split_lines(chunks)) == lines


@given(st.lists(LINE, max_size=4), LINE)
def test_a_truncated_line_is_an_error_after_the_whole_ones(lines: list[bytes], half: bytes) -> None:
    whole = split_lines([b"".join(line + b"\n" for line in lines) + half])
    assert [next(whole) for _ in lines] == lines
    with pytest.raises(TruncatedLineError):
        next(whole)


def test_an_endless_line_is_an_error_before_memory_runs_out() -> None:
    """However it is cut up; whole lines before it are yielded, and many short lines are within the limit."""
    endless = chain([b"{}\n"], repeat(b"x" * 1000))
    lines = split_lines(endless, max_bytes=5000)
    assert next(lines) == b"{}"
    with pytest.raises(TruncatedLineError, match="longer than"):
        next(lines)
    assert len(list(split_lines([b"1234\n" * 2000], max_bytes=5000))) == 2000


def recorded() -> Iterator[RecordingEntry]:
    for path in sorted(RECORDINGS.glob("*.jsonl.gz"))[:3]:
        with gzip.open(path) as file:
            for text in file:
                line = msgspec.json.decode(text, type=RecordingEntry)
                if line.kind in RESOURCES and line.type != "BOOKMARK":
                    yield line


def test_objects_of_a_real_cluster_are_decoded_and_reduced() -> None:
    wires = {plural: WatchCodec(resource) for plural, resource in RESOURCES.items()}
    count = 0
    for line in recorded():
        wire = wires[line.kind]
        found = wire.decode_object(line.object)
        assert found.error == ""
        entry = found.entry(line.t, line.kind, line.type)
        again = wire.decode_object(entry.object)
        assert again == found, "what is recorded says the same"
        assert not {"env", "args", "command", "managedFields", "image"} & keys(json.loads(bytes(entry.object)))
        assert decode(entry, 7) == decode(moved(line, line.t), 7), "live, no object is decoded again"
        count += 1
    assert count > 1000


HEAD = {"metadata": {"name": "x", "uid": "u"}}
BAD = {**HEAD, "spec": 7, "involvedObject": 7, "endpoints": 7}  # one of them is wrong in each resource


@pytest.mark.parametrize("plural", RESOURCES)
@pytest.mark.parametrize(
    ("type_", "object_", "decoded", "error"),
    [
        ("ADDED", HEAD, True, ""),
        ("ADDED", BAD, False, "undecodable"),
        ("BOOKMARK", BAD, False, ""),
    ],
)
def test_events_are_decoded_as_far_as_they_can_be(
    plural: str, type_: str, object_: dict[str, object], decoded: bool, error: str
) -> None:
    codec = WatchCodec(RESOURCES[plural])
    found_type, found = codec.decode_event(json.dumps({"type": type_, "object": object_}).encode())
    assert (found_type, found.key, found.metadata.uid) == (type_, ("", "x"), "u")
    assert (found.object is not None) == decoded
    assert found.error.startswith(error)


@pytest.mark.parametrize("plural", RESOURCES)
def test_the_status_of_an_error_event(plural: str) -> None:
    codec = WatchCodec(RESOURCES[plural])
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "message": "too old", "code": 410}
    line = json.dumps({"type": "ERROR", "object": status}).encode()
    assert codec.decode_event(line)[0] == "ERROR"
    assert (codec.decode_status(line).code, codec.decode_status(line).message) == (410, "too old")


@pytest.mark.parametrize("line", [b"", b"[]", b'{"type":"ADDED"}', b'{"type":"A","object":{"metadata":[]}}', b"\xff"])
def test_a_line_that_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(DECODE_ERRORS):
        WatchCodec(RESOURCES["pods"]).decode_event(line)


SECRET = "s3cret"
CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": SECRET,
    "command": [SECRET],
    "args": [SECRET],
    "workingDir": SECRET,
    "env": [{"name": SECRET, "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "volumeMounts": [{"name": "v", "mountPath": SECRET, "subPathExpr": SECRET}],
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}, "postStart": {"exec": {"command": [SECRET]}}},
    "readinessProbe": {
        "periodSeconds": 5,
        "initialDelaySeconds": 7,
        "httpGet": {"path": SECRET, "host": SECRET, "httpHeaders": [{"name": SECRET, "value": SECRET}]},
    },
    "startupProbe": {"periodSeconds": 2, "exec": {"command": [SECRET]}},
    "livenessProbe": {"exec": {"command": [SECRET]}},
    "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": SECRET}]},
}
POD_SPEC: dict[str, Any] = {
    "containers": [CONTAINER, {"name": "http", "lifecycle": {"preStop": {"httpGet": {"path": SECRET}}}}],
    "initContainers": [CONTAINER],
    "ephemeralContainers": [CONTAINER],
    "imagePullSecrets": [{"name": SECRET}],
    "serviceAccountName": SECRET,
    "hostname": SECRET,
    "hostAliases": [{"ip": SECRET, "hostnames": [SECRET]}],
    "securityContext": {"seLinuxOptions": {"user": SECRET}},
    "volumes": [{"name": "v", "secret": {"secretName": SECRET}, "hostPath": {"path": SECRET}}],
    "terminationGracePeriodSeconds": 20,
    "schedulerName": "default-scheduler",
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": SECRET}]}},
}
NOTES = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "kubectl.kubernetes.io/restartedAt": SECRET}


@pytest.mark.parametrize("plural", ["pods", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs"])
def test_of_pods_and_templates_only_what_decides_their_life_is_recorded(plural: str) -> None:
    template = {"metadata": {"annotations": NOTES, "labels": {"app": "a"}}, "spec": POD_SPEC}
    spec = POD_SPEC if plural == "pods" else {"replicas": 2, "template": template}
    raw = {"metadata": {"name": "x", "annotations": NOTES}, "spec": spec}
    found = WatchCodec(RESOURCES[plural]).decode_object(msgspec.Raw(msgspec.json.encode(raw)))
    recorded_text = bytes(found.entry(0, plural, "LIST").object).decode()
    assert SECRET not in recorded_text
    body = json.loads(recorded_text)["spec"]
    pod = body if plural == "pods" else body["template"]["spec"]
    assert pod["containers"] == [
        {
            "name": "c",
            "lifecycle": {"preStop": {"exec": {}}},
            "readinessProbe": {"initialDelaySeconds": 7, "periodSeconds": 5},
            "startupProbe": {"periodSeconds": 2},
            "resources": {"requests": {"cpu": "100m"}},
        },
        {"name": "http", "lifecycle": {"preStop": {"httpGet": {}}}},
    ]
    assert pod["affinity"] == {"podAntiAffinity": {}}
    assert (pod["terminationGracePeriodSeconds"], pod["nodeSelector"]) == (20, {"disk": "ssd"})


def keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in keys(inner)}
    if isinstance(value, list):
        return {key for inner in value for key in keys(inner)}
    return set()


def test_backoff() -> None:
    pace = Backoff()
    delays = [pace.record_failure(0.0) for _ in range(12)]
    assert delays[0] == 0.0, "the first try is made at once"
    for delay, most in zip(delays[1:], [0.25, 0.5, 1, 2, 4, 5, 5, 5, 5, 5, 5], strict=True):
        assert most / 2 <= delay <= most
    assert pace.record_failure(60.0) == 0.0, "a good time makes failures forgotten"
    assert [pace.record_end(t) for t in (300.0, 0.1, 300.0, 0.1, 0.1, 0.1)] == [True, True, True, True, False, False]


def test_of_managed_fields_only_the_owners_of_a_nodes_cordon_and_taints_are_recorded() -> None:
    def entry(manager: str, **fields: Any) -> dict[str, Any]:
        return {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}

    entries = [
        entry("kubelet", **{"f:status": {"f:conditions": {}}}),
        entry("labeller", **{"f:metadata": {"f:labels": {"f:secret": {}}}, "f:spec": {"f:podCIDR": {}}}),
        entry("kubectl", **{"f:spec": {"f:unschedulable": {}, "f:podCIDR": {}}}),
    ]
    codec = WatchCodec(RESOURCES["nodes"])
    raw = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "n", "managedFields": entries}}))
    metadata = json.loads(bytes(codec.decode_object(raw).entry(0, "nodes", "LIST").object))["metadata"]
    owned: dict[str, Any] = {"f:spec": {"f:unschedulable": {}}}
    assert metadata["managedFields"] == [{"manager": "kubectl", "operation": "Update", "fieldsV1": owned}]
    none = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "n", "managedFields": None}}))
    assert (
        "managedFields" not in json.loads(bytes(codec.decode_object(none).entry(0, "nodes", "LIST").object))["metadata"]
    )

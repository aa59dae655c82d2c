"""Server-side printing: cells as of Kubernetes' printers."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.http.printer_table import printer_of
from chaos.lab.http.printers import first_three, human_duration, labels_text, selector_text
from chaos.lab.http.reads import PartialObjectMetadata, Table
from chaos.lab.http.resources import RESOURCES
from chaos.lab.sim import SimClock

NOW = 1_795_000_600.0
BORN = "2026-11-18T11:06:40Z"  # ten minutes before
DELETED = {"deletionTimestamp": BORN}
RUNNING = {"ready": True, "state": {"running": {"startedAt": BORN}}}


def cells(plural: str, obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    printer = printer_of(plural)
    row = printer.cells({"metadata": {"name": "x", "creationTimestamp": BORN, **metadata}, **obj}, NOW)
    assert len(row) == len(printer.columns)
    return {column["name"]: cell for column, cell in zip(printer.columns, row, strict=True)}


def ended(reason: str = "", code: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "ready": False,
        "state": {"terminated": {"exitCode": code, **({"reason": reason} if reason else {}), **more}},
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0.9, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("status", "metadata", "expected"),
    [
        ({"phase": "Pending"}, {}, ("0/1", "Pending", "0")),
        ({"phase": "Running", "containerStatuses": [RUNNING]}, {}, ("1/1", "Running", "0")),
        ({"phase": "Running", "containerStatuses": [RUNNING]}, DELETED, ("1/1", "Terminating", "0")),
        ({"phase": "Failed", "containerStatuses": [ended("Error", 1)]}, DELETED, ("0/1", "Error", "0")),
        ({"phase": "Succeeded", "containerStatuses": [ended("Completed")]}, {}, ("0/1", "Completed", "0")),
        ({"phase": "Failed", "containerStatuses": [ended(code=137)]}, {}, ("0/1", "ExitCode:137", "0")),
        ({"phase": "Failed", "containerStatuses": [ended(code=137, signal=9)]}, {}, ("0/1", "Signal:9", "0")),
        ({"phase": "Failed", "reason": "NodeShutdown"}, {}, ("0/1", "NodeShutdown", "0")),
        ({"phase": "Failed", "reason": "Evicted"}, {}, ("0/1", "Evicted", "0")),
        ({"phase": "Running", "reason": "NodeLost", "containerStatuses": [RUNNING]}, DELETED, ("1/1", "Unknown", "0")),
        (
            {"phase": "Pending", "containerStatuses": [{"ready": False, "state": {"waiting": {"reason": "X"}}}]},
            {},
            ("0/1", "X", "0"),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "ready": False,
                        "restartCount": 3,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 1, "finishedAt": BORN}},
                    }
                ],
            },
            {},
            ("0/1", "CrashLoopBackOff", "3 (10m ago)"),
        ),
        (
            {"phase": "Running", "containerStatuses": [ended("Completed"), RUNNING]},
            {},
            ("1/1", "NotReady", "0"),
        ),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [ended("Completed"), RUNNING],
            },
            {},
            ("1/1", "Running", "0"),
        ),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
            {},
            ("0/1", "SchedulingGated", "0"),
        ),
    ],
)
def test_pods(status: dict[str, Any], metadata: dict[str, Any], expected: tuple[str, str, str]) -> None:
    row = cells("pods", {"spec": {"containers": [{}]}, "status": status}, **metadata)
    assert (row["Ready"], row["Status"], row["Restarts"]) == expected
    assert (row["Age"], row["Node"], row["IP"], row["Readiness Gates"]) == ("10m", "<none>", "<none>", "<none>")


def test_a_wide_pod() -> None:
    status = {
        "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        "nominatedNodeName": "n2",
        "conditions": [{"type": "gate", "status": "True"}],
    }
    gates = [{"conditionType": "gate"}, {"conditionType": "other"}]
    row = cells("pods", {"spec": {"nodeName": "n1", "readinessGates": gates}, "status": status})
    assert (row["IP"], row["Node"], row["Nominated Node"], row["Readiness Gates"]) == ("10.0.0.1", "n1", "n2", "1/2")


@pytest.mark.parametrize(
    ("ready", "spec", "text"),
    [
        ("True", {}, "Ready"),
        ("False", {}, "NotReady"),
        ("Unknown", {"unschedulable": True}, "NotReady,SchedulingDisabled"),
        ("", {}, "Unknown"),
    ],
)
def test_nodes(ready: str, spec: dict[str, Any], text: str) -> None:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    labels = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "a": "b"}
    row = cells("nodes", {"spec": spec, "status": {"conditions": conditions}}, labels=labels)
    assert (row["Status"], row["Roles"], row["OS-Image"]) == (text, "control-plane,worker", "<unknown>")


@pytest.mark.parametrize(
    ("plural", "obj", "expected"),
    [
        ("deployments", {"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}, {"Ready": "2/3", "Available": 0}),
        ("statefulsets", {"spec": {"replicas": 1}}, {"Ready": "0/1"}),
        ("daemonsets", {"status": {"numberReady": 2}}, {"Ready": 2, "Node Selector": "<none>"}),
        ("replicasets", {"spec": {"replicas": 2}, "status": {"replicas": 1}}, {"Desired": 2, "Current": 1}),
        ("jobs", {"spec": {"completions": 4}, "status": {"succeeded": 1}}, {"Completions": "1/4", "Status": "Running"}),
        ("jobs", {"spec": {"parallelism": 2}}, {"Completions": "0/1 of 2", "Duration": ""}),
        (
            "jobs",
            {"status": {"startTime": BORN, "conditions": [{"type": "Failed", "status": "True"}]}},
            {"Status": "Failed", "Duration": "10m", "Completions": "0/1"},
        ),
        (
            "poddisruptionbudgets",
            {"spec": {"maxUnavailable": "25%"}},
            {"Min Available": "N/A", "Max Unavailable": "25%"},
        ),
        (
            "services",
            {"spec": {"type": "ClusterIP", "clusterIPs": ["None"]}},
            {"Cluster-IP": "None", "Port(s)": "<none>"},
        ),
        ("services", {"spec": {"ports": [{"port": 80, "nodePort": 3}, {"port": 9}]}}, {"Port(s)": "80:3/TCP,9/TCP"}),
        (
            "endpointslices",
            {"endpoints": [{"addresses": list("abcd")}]},
            {"Endpoints": "a,b,c + 1 more...", "Ports": "<unset>"},
        ),
        ("persistentvolumeclaims", {"status": {"phase": "Pending"}}, {"Status": "Pending", "Capacity": ""}),
        (
            "persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "claimRef": {"namespace": "a", "name": "b"},
                }
            },
            {"Capacity": "1Gi", "Access Modes": "RWO", "Claim": "a/b"},
        ),
        ("volumeattachments", {"spec": {"source": {"persistentVolumeName": "pv"}}}, {"PV": "pv", "Attached": False}),
        ("controllerrevisions", {"revision": 2}, {"Controller": "<none>", "Revision": 2}),
        ("priorityclasses", {"value": 5}, {"Value": 5, "Global-Default": False}),
        ("configmaps", {"data": {"a": "1"}, "binaryData": {"b": ""}}, {"Data": 2}),
        ("secrets", {"type": "Opaque", "data": {"a": "eA=="}}, {"Type": "Opaque", "Data": 1}),
        ("leases", {"spec": {"holderIdentity": "me"}}, {"Holder": "me"}),
        (
            "events",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "lastTimestamp": BORN,
                "message": " m ",
                "source": {"component": "c", "host": "h"},
            },
            {
                "Last Seen": "10m",
                "First Seen": "<unknown>",
                "Object": "pod/p",
                "Source": "c, h",
                "Count": 1,
                "Message": "m",
            },
        ),
        ("events", {"series": {"count": 7, "lastObservedTime": BORN}}, {"Count": 7, "Last Seen": "10m"}),
        ("things", {}, {"Name": "x", "Created At": BORN}),
    ],
)
def test_cells(plural: str, obj: dict[str, Any], expected: dict[str, Any]) -> None:
    row = cells(plural, obj)
    assert {name: row[name] for name in expected} == expected


def test_a_volume_being_deleted_is_terminating() -> None:
    assert cells("persistentvolumes", {"status": {"phase": "Bound"}}, **DELETED)["Status"] == "Terminating"


def test_the_controller_of_a_revision() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
    assert cells("controllerrevisions", {}, ownerReferences=[owner])["Controller"] == "statefulset.apps/db"


def test_small_texts() -> None:
    assert labels_text({"b": "2", "a": "1"}) == "a=1,b=2"
    assert labels_text(None) == "<none>"
    expressions = [
        {"key": "c", "operator": "In", "values": ["y", "x"]},
        {"key": "d", "operator": "NotIn", "values": ["z"]},
        {"key": "a", "operator": "Exists"},
        {"key": "b", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"e": "1"}, "matchExpressions": expressions}
    assert selector_text(selector) == "a,!b,c in (x,y),d notin (z),e=1"
    assert first_three([]) == "<unset>"
    assert first_three("abc") == "a,b,c"


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=lambda resource: resource.plural)
def test_every_resource_prints_a_bookmark(resource: Any) -> None:
    """A bookmark has only a resourceVersion."""
    bookmark = {"metadata": {"resourceVersion": "7", "creationTimestamp": None}}
    table = Table(resource, "v1", "Metadata", SimClock(NOW, 1)).show(bookmark)
    assert table["metadata"] == {"resourceVersion": "7"}
    assert table["rows"][0]["object"] == PartialObjectMetadata("v1").show(bookmark)


def test_a_finished_pod_has_a_completed_row() -> None:
    pods = RESOURCES["v1", "pods"]
    pod = {"metadata": {"name": "x", "creationTimestamp": BORN}, "status": {"phase": "Failed"}}
    (row,) = Table(pods, "v1", "None", SimClock(NOW, 1)).show(pod)["rows"]
    assert (row["object"], row["conditions"][0]["reason"]) == (None, "Failed")
    (row,) = Table(pods, "v1", "Object", SimClock(NOW, 1)).show(pod)["rows"]
    assert row["object"] == {"kind": "Pod", "apiVersion": "v1", **pod}

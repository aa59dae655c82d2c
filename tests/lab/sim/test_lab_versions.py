"""Every difference between versions is seen in exactly the labs of the versions that have it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.cluster import Cluster
from chaos.lab.http.errors import ApiError
from chaos.lab.http.options import parse_watch_options
from chaos.lab.node.logind import KUBELET
from chaos.lab.objects import labels_of
from chaos.lab.sim import seconds_of
from chaos.lab.spec import LabSpec, NodeSpec, SpecError
from chaos.lab.versions import DIFFERENCES, NEWEST, OLDEST, features_of, minor_of, nearest_version
from tests.kit.simkit import VICTIM, Object, disruption, events, node, ready, run, spec, started, workload
from tests.kit.win_host import WindowsHost
from tools import lab_versions_page

VERSIONS = [f"v1.{minor}" for minor in range(OLDEST, NEWEST + 1)]
# The other path by which the table was read: the stages of v1.31 to v1.36 that each version has by default.
EXPECTED = {
    "v1.31": set(),
    "v1.32": {"long-grace-period", "volumes-awaited", "admission-rejections", "scaling-from-to", "watch-list"},
    "v1.33": {"swap-reported", "no-kube-proxy-version", "sleep-zero", "pod-generation"},
    "v1.34": {"pod-observed-generation", "windows-graceful-shutdown", "report-offset"},
    "v1.35": {"terminating-replicas", "nomination-cleared", "topology-labels"},
    "v1.36": set(),
}


def _lab(version: str, **worker: Any) -> Cluster:
    """A cluster with the namespace demo and priorities; ``worker``: settings of its worker."""
    lab = spec(workers=1, kubernetes=version)
    for key, value in worker.items():
        setattr(lab.nodes[1], key, value)
    cluster, _ = started(lab, settle=1.0, recorded=False)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    for name, value in (("low", 10), ("high", 1000)):
        cluster.create_object("priorityclasses", {"metadata": {"name": name}, "value": value})
    return cluster


def _pods(cluster: Cluster, app: str = "web") -> list[Object]:
    return [pod for pod in cluster.store.list("pods", "demo") if labels_of(pod).get("app") == app]


def _running_pod(version: str, **worker: Any) -> Object:
    cluster = _lab(version, **worker)
    cluster.create_object("deployments", workload("web", replicas=1))
    run(cluster, 10.0)
    (pod,) = _pods(cluster)
    assert pod["status"]["phase"] == "Running"
    return pod


def _taint(cluster: Cluster) -> None:
    taints = [{"key": "x", "effect": "NoExecute"}]
    cluster.store.patch("nodes", "", VICTIM, lambda obj: obj["spec"].update(taints=taints))


def _refused(call: Callable[[], object], error: type[Exception], text: str) -> bool:
    """Whether the call raises the error, which has the text."""
    try:
        call()
    except error as raised:
        found = str(raised)
    else:
        return False
    assert text in found
    return True


def _grace_period(version: str) -> bool:
    """Ready=Unknown comes one grace period after the last renewal of the Lease, and at most two passes later."""
    cluster = _lab(version)
    run(cluster, 30.0)
    cluster.machines[VICTIM].power_off()
    while ready(node(cluster))["status"] != "Unknown":
        run(cluster, 0.5)
        assert cluster.sim.now < cluster.spec.start + 200
    lease = cluster.store.get("leases", "kube-node-lease", VICTIM)
    assert lease is not None
    silence = cluster.sim.now - seconds_of(lease["spec"]["renewTime"])
    assert 40 <= silence <= 60.5
    return silence >= 50


def _volumes(version: str) -> bool:
    """Whether a shutdown goes on after the end of its pods while their volumes cannot be unmounted."""
    cluster = _lab(version)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "demo"}
    cluster.create_object("persistentvolumeclaims", {"metadata": metadata, "spec": claim})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.create_object("deployments", workload("web", replicas=1, pod={"volumes": volumes}))
    run(cluster, 30.0)
    machine = cluster.machines[VICTIM]
    machine.runtime.plugins_lost = True  # the CSI driver registers 3 s after the kubelet's start, or later
    machine.kubelet.restart()
    while not machine.kubelet.is_running:
        run(cluster, 0.1)
    run(cluster, 1.6)  # it has its lock, and has adopted the pod
    begin = cluster.sim.now
    machine.logind.power_off()
    run(cluster, 15.0)
    records = machine.journal.since(begin, KUBELET)
    killed = [record.t for record in records if "finished killing pod" in record.message]
    done = [record.t for record in records if "Done waiting for all pods" in record.message]
    assert (len(killed), len(done)) == (1, 1)
    return done[0] - killed[0] > 0.31


def _rejections(version: str) -> bool:
    cluster = _lab(version)
    cluster.store.patch(
        "nodes", "", VICTIM, lambda obj: obj["spec"].update(taints=[{"key": "x", "effect": "NoExecute"}])
    )
    pod = {"containers": [{"name": "c"}], "nodeName": VICTIM}
    cluster.create_object("pods", {"metadata": {"name": "p", "namespace": "demo"}, "spec": pod})
    run(cluster, 5.0)
    rejected = cluster.store.get("pods", "demo", "p")
    assert rejected is None or rejected["status"]["phase"] == "Failed"
    return "kubelet_admission_rejections_total{" in cluster.machines[VICTIM].kubelet.metrics_text()


def _scaling(version: str) -> bool:
    cluster = _lab(version)
    cluster.create_object("deployments", workload("web", replicas=1))
    run(cluster, 3.0)
    stored = cluster.store.get("deployments", "demo", "web")
    assert stored is not None
    cluster.registry.update("deployments", {**stored, "spec": {**stored["spec"], "replicas": 2}})
    run(cluster, 3.0)
    texts = [
        item["message"].partition(" replica set ")[2].partition(" ")[2] for item in events(cluster, "ScalingReplicaSet")
    ]
    assert texts in (["from 0 to 1", "from 1 to 2"], ["to 1", "to 2 from 1"])
    return "from 0 to 1" in texts


def _watch_list(version: str) -> bool:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    has_feature = spec(kubernetes=version).has_feature("watch-list")
    text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    return not _refused(lambda: parse_watch_options(query, has_feature), ApiError, text)


def _sleep_zero(version: str) -> bool:
    cluster = _lab(version)
    container = {"name": "c", "lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}
    deployment = workload("web", pod={"containers": [container]})
    if _refused(lambda: cluster.create_object("deployments", deployment), InvalidError, "must be greater than 0"):
        return False
    run(cluster, 10.0)
    return bool(_pods(cluster)[0]["status"]["phase"] == "Running")


def _observed(version: str) -> bool:
    """Of the kubelet's status, of what the scheduler and taint eviction write."""
    cluster = _lab(version)
    cluster.create_object("deployments", workload("web", replicas=1, stops=9))
    cluster.create_object("deployments", workload("lost", replicas=1, pod={"nodeSelector": {"no": "where"}}))
    run(cluster, 10.0)
    cluster.store.patch(
        "nodes", "", VICTIM, lambda obj: obj["spec"].update(taints=[{"key": "x", "effect": "NoExecute"}])
    )
    run(cluster, 5.0)
    evicted = next(pod for pod in _pods(cluster) if disruption(pod) == "DeletionByTaintManager")
    statuses = [evicted["status"], _pods(cluster, "lost")[0]["status"]]
    has = ["observedGeneration" in item for status in statuses for item in status["conditions"]]
    has.append("observedGeneration" in statuses[0])
    assert len(set(has)) == 1
    return has[0]


def _windows(version: str) -> bool:
    host = WindowsHost(kubernetes=version, shutdown_grace_period="20s", shutdown_grace_period_critical_pods="10s")
    pod = {"containers": [{"name": "c"}], "nodeName": "win1", "nodeSelector": {"kubernetes.io/os": "windows"}}
    host.cluster.create_object("pods", {"metadata": {"name": "p", "namespace": "default"}, "spec": pod})
    host.wait(20.0)
    host.run("shutdown /s /t 0")
    host.wait(60.0)
    ended = host.cluster.store.get("pods", "default", "p")
    assert ended is not None
    return disruption(ended) == "TerminationByKubelet"


def _report_offset(version: str) -> bool:
    """Whether any of four quiet nodes reports first at another time than 5 minutes after its last change."""
    cluster, history = started(spec(workers=4, kubernetes=version), settle=500.0, recorded=False)
    gaps = []
    for name in [item.name for item in cluster.spec.nodes[1:]]:
        times = [t for t, _, obj in history.since(0.0, "nodes") if obj["metadata"]["name"] == name and _is_ready(obj)]
        late = [after - before for before, after in pairwise(times) if after - before > 100]
        gaps.append(late[0])
    return not all(300 <= gap <= 311 for gap in gaps)


def _is_ready(obj: Object) -> bool:
    return bool(ready(obj)["status"] == "True")


def _terminating(version: str) -> bool:
    cluster = _lab(version)
    cluster.create_object("deployments", workload("web", replicas=1))
    run(cluster, 5.0)
    found = [item["status"] for kind in ("deployments", "replicasets") for item in cluster.store.list(kind, "demo")]
    has = ["terminatingReplicas" in status for status in found]
    assert len(has) == 2
    assert len(set(has)) == 1
    return has[0]


def _nomination(version: str) -> bool:
    cluster = _lab(version)
    for name, priority in (("small", "low"), ("big", "high")):
        container = {"name": "c", "resources": {"requests": {"cpu": "1900m"}}}
        pod = {"containers": [container], "priorityClassName": priority}
        cluster.create_object("deployments", workload(name, replicas=1, pod=pod, stops=4))
        run(cluster, 2.0)
    assert _pods(cluster, "big")[0]["status"]["nominatedNodeName"] == VICTIM
    run(cluster, 20.0)
    (big,) = _pods(cluster, "big")
    assert big["spec"]["nodeName"] == VICTIM
    return "nominatedNodeName" not in big["status"]


def _node_info(version: str) -> Object:
    info: Object = node(_lab(version, swap="2Gi", fail_swap_on=False))["status"]["nodeInfo"]
    assert info["kubeletVersion"] == f"{version}.0"
    return info


SEEN: dict[str, Callable[[str], bool]] = {
    "long-grace-period": _grace_period,
    "volumes-awaited": _volumes,
    "admission-rejections": _rejections,
    "scaling-from-to": _scaling,
    "watch-list": _watch_list,
    "swap-reported": lambda version: "swap" in _node_info(version),
    "no-kube-proxy-version": lambda version: not _node_info(version)["kubeProxyVersion"],
    "sleep-zero": _sleep_zero,
    "pod-generation": lambda version: "generation" in _running_pod(version)["metadata"],
    "pod-observed-generation": _observed,
    "windows-graceful-shutdown": _windows,
    "report-offset": _report_offset,
    "terminating-replicas": _terminating,
    "nomination-cleared": _nomination,
    "topology-labels": lambda version: "topology.kubernetes.io/zone" in labels_of(_running_pod(version, zone="a")),
}


def test_every_difference_can_be_seen() -> None:
    assert set(SEEN) == {item.id for item in DIFFERENCES}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("difference", SEEN)
def test_what_a_lab_of_a_version_shows(difference: str, version: str) -> None:
    since = next(name for name in VERSIONS if difference in EXPECTED[name])
    expected = minor_of(version) >= minor_of(since) and (difference, version) != ("watch-list", "v1.33")
    assert SEEN[difference](version) is expected
    assert (difference in features_of(version)) is expected


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("v1.30", "'v1.30' is not simulated, only v1.31 to v1.36"),
        ("v1.37.1", "'v1.37.1' is not simulated"),
        ("v2.0", "'v2.0' is not a version: write it like v1.36 or v1.36.2"),
        ("1.36", "'1.36' is not a version"),
        ("v1.36.", "not a version"),
        ("v1.36.2-gke.1", "not a version"),
        ("v1.٣٦", "not a version"),
        ("newest", "not a version"),
        ("", "not a version"),
    ],
)
def test_other_versions_are_refused(version: str, message: str) -> None:
    text = msgspec.json.encode({"nodes": [{"name": "a"}], "kubernetes": version})
    with pytest.raises(SpecError, match="LabSpec: kubernetes ") as caught:
        LabSpec.from_json(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("recorded", "simulated"),
    [
        ("v1.36.2", "v1.36.2"), ("v1.33.4-gke.100", "v1.33.4"), ("v1.29.1", "v1.31"), ("v1.40.0", "v1.36"),
        ("v1.34", "v1.34"), ("", "v1.36.2"), ("v0.1", "v1.36.2"),
    ],
)  # fmt: skip
def test_a_recording_is_replayed_as_the_nearest_version(recorded: str, simulated: str) -> None:
    assert nearest_version(recorded) == simulated


def test_a_setting_is_stronger_than_the_default_of_the_version() -> None:
    text = b'{"nodes": [{"name": "a"}], "kubernetes": "v1.31", "controllers": {"nodeMonitorGracePeriod": 33}}'
    lab = LabSpec.from_json(text)
    assert lab.controllers.node_monitor_grace_period == 33
    assert LabSpec.from_json(lab.to_json()) == lab
    assert LabSpec(nodes=[NodeSpec(name="a")], kubernetes="v1.31").controllers.node_monitor_grace_period == 40


def test_the_page_lists_the_differences() -> None:
    stored = lab_versions_page.PAGE.read_text(encoding="utf-8")
    assert lab_versions_page.page() == stored, "run `python tools/lab_versions_page.py`"
    assert all(item.text in stored for item in DIFFERENCES)

"""A snapshot of any cluster: what cannot be read is a line of its header, and nothing stops it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.app.snapshot.take import snapshot_permissions, take_snapshot
from chaos.cluster.errors import KubeRejected
from chaos.cluster.snapshot.document import Header
from chaos.cluster.snapshot.kinds import KINDS
from chaos.core.errors import UsageError
from chaos.core.ports import Response
from tests.kit.listed_cluster import CONFIG, Hosts, ListedCluster, connection, lines_of, node

NODES = [node("n1", "10.0.0.1"), node("n2", "10.0.0.2"), node("n3", "10.0.0.3")]
ANSWER = Response(200, json.dumps(CONFIG).encode(), {})
ASSUMED = "no pod of kube-system shows them; the defaults are assumed"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"}, "spec": spec, "status": {}}


def healthy() -> ListedCluster:
    kube = ListedCluster({"nodes": NODES, "pods": [pod(f"p{number}", nodeName="n1") for number in range(5)]})
    kube.configs = {f"10.0.0.{number}": ANSWER for number in (1, 2, 3)}
    return kube


def missing(header: Header) -> dict[str, str]:
    return {item.what: item.why for item in header.missing}


FLAGS = {f"flags of {name}": ASSUMED for name in ("kube-controller-manager", "kube-apiserver")}
ALL_HOSTS = Hosts({"n1": 252, "n2": 252, "n3": 257})


def test_a_whole_cluster(tmp_path: Path) -> None:
    header = take_snapshot(connection(healthy(), ALL_HOSTS), tmp_path / "s.gz")
    lines = lines_of(tmp_path / "s.gz")
    assert lines[0] == {"kind": "header", "object": json.loads(json.dumps(lines[0]["object"]))}
    assert lines[0]["object"]["format"] == 1
    assert [line["object"]["metadata"]["name"] for line in lines if line["kind"] == "nodes"] == ["n1", "n2", "n3"]
    assert [line["object"]["metadata"]["name"] for line in lines if line["kind"] == "pods"] == [
        f"p{n}" for n in range(5)
    ]
    assert [line for line in lines if line["kind"] == "configz"] == [
        {"kind": "configz", "node": name, "object": {"shutdownGracePeriod": "30s"}} for name in ("n1", "n2", "n3")
    ]
    assert [line["object"] for line in lines if line["kind"] == "host"] == [{"systemd": n} for n in (252, 252, 257)]
    assert missing(header) == FLAGS
    assert header.counts["pods"] == 5
    assert oct((tmp_path / "s.gz").stat().st_mode & 0o777) == "0o600"


def test_lists_are_paged_and_a_list_that_restarts_is_not_doubled(tmp_path: Path) -> None:
    kube = healthy()
    kube.expired = {"/api/v1/pods", "/api/v1/nodes"}
    take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz")
    assert [query for path, query in kube.queries if path == "/api/v1/pods"] == [
        {"limit": "500"},
        {"limit": "500", "continue": "2"},
        {},
    ]
    names = [
        line["object"]["metadata"]["name"] for line in lines_of(tmp_path / "s.gz") if line["kind"] in ("nodes", "pods")
    ]
    assert names == ["n1", "n2", "n3", *(f"p{number}" for number in range(5))]
    assert sum(line["kind"] == "configz" for line in lines_of(tmp_path / "s.gz")) == 3


def test_rights_that_lack(tmp_path: Path) -> None:
    kube = healthy()
    kube.refused = {KINDS[plural].path: 403 for plural in ("pods", "persistentvolumes")} | {"/api/v1/events": 403}
    header = take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz")
    found = missing(header)
    assert found["pods"].startswith("not permitted; the copy has none (list of /api/v1/pods: 403 User planted-user")
    assert found["events"].startswith("not permitted; times to pull and to end are measured without them")
    assert {item.what for item in header.missing if item.is_object} == {"pods", "persistentvolumes"}
    assert header.counts["nodes"] == 3


def test_a_cluster_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    kube = healthy()
    kube.refused = {kind.path: 403 for kind in KINDS.values()}
    with pytest.raises(KubeRejected, match="403"):
        take_snapshot(connection(kube), tmp_path / "s.gz")
    assert not list(tmp_path.iterdir())


def test_a_kind_that_is_not_served_and_a_list_without_a_response(tmp_path: Path) -> None:
    kube = healthy()
    kube.lists.pop(KINDS["poddisruptionbudgets"].path)
    kube.unreachable = {KINDS["jobs"].path}
    found = missing(take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz"))
    assert found["poddisruptionbudgets"].startswith("not served by this cluster; the copy has none")
    assert found["jobs"].startswith("not reachable (refused); the copy has none")


def test_fifty_custom_resources(tmp_path: Path) -> None:
    kube = healthy()
    kube.groups = (
        "apps",
        "batch",
        "policy",
        "rbac.authorization.k8s.io",
        *(f"g{number:02}.example.com" for number in range(50)),
    )
    found = missing(take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz"))
    shown = ", ".join(f"g{number:02}.example.com" for number in range(5))
    assert found["custom resources of 50 API groups"] == f"the lab has no operators ({shown}, ...)"


def test_custom_resources_of_projects_of_kubernetes(tmp_path: Path) -> None:
    kube = healthy()
    kube.groups = ("apps", "storage.k8s.io", "metrics.k8s.io", "autoscaling.k8s.io", "gateway.networking.k8s.io")
    found = missing(take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz"))
    shown = "autoscaling.k8s.io, gateway.networking.k8s.io"
    assert found["custom resources of 2 API groups"] == f"the lab has no operators ({shown})"


def test_quotas_and_limits_of_namespaces(tmp_path: Path) -> None:
    kube = healthy()
    kube.lists["/api/v1/resourcequotas"] = [{}, {}]
    kube.lists["/api/v1/limitranges"] = [{}]
    found = missing(take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz"))
    assert found["2 ResourceQuotas"] == "the lab has none: no pod is refused by them"
    assert found["1 LimitRanges"] == "the lab has none: new pods are as in their templates"


def test_autoscalers_webhooks_and_other_schedulers(tmp_path: Path) -> None:
    kube = healthy()
    kube.lists["/api/v1/pods"] += [pod("own", schedulerName="volcano")]
    scaler = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "metrics": [{"type": "Pods"}]}
    kube.lists["/apis/autoscaling/v2/horizontalpodautoscalers"] = [{"metadata": {"name": "web"}, "spec": scaler}]
    webhook = {
        "name": "v.example.com",
        "failurePolicy": "Fail",
        "clientConfig": {"caBundle": "x", "service": {"name": "v"}},
    }
    hooks = {"metadata": {"name": "v"}, "webhooks": [webhook]}
    kube.lists["/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"] = [hooks]
    kube.refused["/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"] = 403
    found = missing(take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz"))
    assert found["1 HorizontalPodAutoscalers"] == "the lab has none: replicas stay as they are"
    assert found["mutating webhooks"] == "their number cannot be read"
    assert found["scheduler volcano"] == "1 pods: the lab has no scheduler other than default-scheduler"
    assert not [what for what in found if "unknown fields" in what]
    objects = {line["kind"]: line["object"] for line in lines_of(tmp_path / "s.gz")}
    assert objects["horizontalpodautoscalers"]["spec"] == {
        key: scaler[key] for key in ("scaleTargetRef", "maxReplicas")
    }
    shown = {"name": "v.example.com", "failurePolicy": "Fail", "clientConfig": {"service": {"name": "v"}}}
    assert objects["validatingwebhookconfigurations"]["webhooks"] == [shown]


def test_unknown_fields_and_a_future_version(tmp_path: Path) -> None:
    kube = healthy()
    kube.lists["/api/v1/pods"] += [pod("new", wings={"number": 2}), {"metadata": {"name": "strange"}, "spec": 5}, 7]
    header = take_snapshot(connection(kube, ALL_HOSTS, "v1.41.0"), tmp_path / "s.gz")
    found = missing(header)
    assert found["Kubernetes v1.41"] == "the lab behaves as v1.36"
    assert found["1 unknown fields of pods"] == "not known to this version (pods.spec.wings)"
    assert found["pods"] == "1 objects cannot be decoded"
    assert "wings" not in str([line for line in lines_of(tmp_path / "s.gz") if line["kind"] == "pods"])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            None,
            "not reachable (refused); its graceful shutdown is not known (https://10.0.0.2:10250: connection refused)",
        ),
        (Response(500, b"{}", {}), "status 500; its graceful shutdown is not known (/configz of n2: 500)"),
        (Response(200, b"oops", {}), "invalid response; its graceful shutdown is not known"),
        (Response(200, b'{"kubeletconfig": 5}', {}), "invalid response; its graceful shutdown is not known"),
    ],
)
def test_a_broken_kubelet(answer: Response | None, why: str, tmp_path: Path) -> None:
    kube = healthy()
    kube.configs.pop("10.0.0.2")
    kube.configs |= {"10.0.0.2": answer} if answer else {}
    found = missing(take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz"))
    assert found.pop("kubelet configuration of n2").startswith(why)
    assert found == FLAGS


def test_hosts_that_do_not_answer(tmp_path: Path) -> None:
    header = take_snapshot(connection(healthy(), Hosts({"n1": 252, "n2": 252}, broken=("n2",))), tmp_path / "s.gz")
    found = missing(header)
    assert found["host facts of n3"].startswith("not readable; its systemd or service is not known (n3 at 10.0.0.9")
    assert found["fact systemd-version of n2"].startswith("not readable; the lab's default is assumed")


def test_of_a_windows_host_only_the_kind_of_service_is_stored(tmp_path: Path) -> None:
    kube = ListedCluster({"nodes": [node(f"n{number}", f"10.0.0.{number}") for number in range(3)]})
    for item in kube.lists["/api/v1/nodes"][1:]:
        item["status"]["nodeInfo"]["operatingSystem"] = "windows"
    commands = {"n1": r"C:\k\nssm.exe", "n2": r'"C:\k\kubelet.exe" --windows-service --hostname-override=n2'}
    take_snapshot(connection(kube, Hosts({"n0": 252}, services=commands)), tmp_path / "s.gz", hosts_per_image=3)
    found = {line["node"]: line["object"] for line in lines_of(tmp_path / "s.gz") if line["kind"] == "host"}
    assert found == {"n0": {"systemd": 252}, "n1": {"kubeletService": "nssm"}, "n2": {"kubeletService": "service"}}


def test_few_hosts_of_each_image_are_contacted(tmp_path: Path) -> None:
    kube = ListedCluster({"nodes": [node(f"n{number}", f"10.0.0.{number}") for number in range(9)]})
    kube.lists["/api/v1/nodes"][8]["status"]["nodeInfo"]["kernelVersion"] = "6.12"
    hosts = Hosts({f"n{number}": 252 for number in range(9)})
    found = missing(take_snapshot(connection(kube, hosts), tmp_path / "s.gz", hosts_per_image=2))
    assert sorted(hosts.contacted) == ["n0", "n1", "n8"]
    assert found["host facts of 6 nodes"] == "not contacted (--hosts)"
    assert kube.certificate("10.0.0.1") == "certificate of n1"
    with pytest.raises(Exception, match="its host is not contacted"):
        kube.certificate("10.0.0.5")


def test_flags_of_the_control_plane(tmp_path: Path) -> None:
    kube = healthy()
    command = [
        "kube-controller-manager",
        "--node-monitor-grace-period=20s",
        "--kubeconfig=/etc/x",
        "--node-eviction-rate=0.5",
    ]
    manager = pod("kube-controller-manager-n1", containers=[{"name": "m", "command": command}])
    manager["metadata"] |= {"namespace": "kube-system", "labels": {"component": "kube-controller-manager"}}
    kube.lists["/api/v1/pods"].append(manager)
    header = take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz")
    assert header.controller_manager == {"nodeMonitorGracePeriod": "20s", "nodeEvictionRate": 0.5}
    assert "flags of kube-apiserver" in missing(header)
    assert "flags of kube-controller-manager" not in missing(header)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        take_snapshot(connection(healthy(), ALL_HOSTS), tmp_path / "none" / "s.gz")


def test_permissions_are_those_of_the_requests(tmp_path: Path) -> None:
    kube = healthy()
    take_snapshot(connection(kube, ALL_HOSTS), tmp_path / "s.gz")
    listed = {path.rpartition("/")[2] for path, _ in kube.queries} - {"apis"}
    assert {item.resource for item in snapshot_permissions(False) if item.verb == "list"} == listed
    assert {item.resource for item in snapshot_permissions(True) if item.verb == "get"} == {
        "namespaces", "nodes", "nodes/configz", "nodes/proxy",
    }  # fmt: skip

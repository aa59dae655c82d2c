"""A lab from a snapshot: pods stay where they were, and what the lab does not model is listed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from chaos.app.snapshot.take import take_snapshot
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import condition_status, is_deleting, is_ready, labels_of, name_of, node_of
from chaos.lab.snapshot.reader import SnapshotError, read_snapshot
from chaos.lab.snapshot.unmodelled import EFFECTS
from chaos.lab.spec import LabSpec, NodeSpec, StaticPod
from tests.kit.lab_copies import Object, api_of, copy_of, save
from tests.kit.listed_cluster import Hosts, ListedCluster, connection, lines_of

RECORDINGS = sorted((Path(__file__).parents[2] / "recordings").glob("*.jsonl.gz"))
PREFIX = "lab.nodefall.dev/"


def first_lists(path: Path) -> ListedCluster:
    """The API of a recorded cluster, as the recording's first lists show it."""
    lists: dict[str, list[Object]] = {}
    ended: set[str] = set()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            if entry["type"] != "LIST":
                ended.add(entry["kind"])
            elif entry["kind"] not in ended:
                lists.setdefault(entry["kind"], []).append(entry["object"])
    return ListedCluster(lists)


def nodes_of(pods: list[Object]) -> dict[str, str]:
    return {f"{pod['metadata']['namespace']}/{name_of(pod)}": node_of(pod) for pod in pods}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_first_lists_of_a_recording(path: Path, tmp_path: Path) -> None:
    api = first_lists(path)
    connected = connection(api)
    connected.clock.t = 1_795_232_000.0
    header = take_snapshot(connected, tmp_path / "s.gz")
    assert [item.what for item in header.missing if "unknown fields" in item.what] == []
    cluster, _ = copy_of(tmp_path / "s.gz")
    recorded = api.lists["/api/v1/pods"]
    left = nodes_of([pod for pod in recorded if not is_deleting(pod)])
    assert left.items() <= nodes_of(cluster.store.list("pods")).items()
    cluster.sim.run_until(cluster.sim.now + 60)
    now = nodes_of(cluster.store.list("pods"))
    assert left == {name: node for name, node in now.items() if name in left}
    assert len(now) <= len(recorded)  # nothing was replaced
    assert {name_of(node): condition_status(node, "Ready") for node in cluster.store.list("nodes")} == {
        name_of(node): condition_status(node, "Ready") for node in api.lists["/api/v1/nodes"]
    }


def workload(name: str, replicas: int = 2, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": body}


@pytest.fixture
def cluster() -> Cluster:
    """Three workers with a Deployment, a StatefulSet with volumes, a DaemonSet and static pods."""
    nodes = [NodeSpec(name=f"w{number}", zone="ab"[number % 2], systemd=257) for number in range(3)]
    nodes[0].static_pods = [StaticPod(name="proxy", priority_class_name="system-node-critical")]
    found = Cluster(LabSpec(nodes=nodes, seed=5))
    found.start()
    found.sim.run_until(found.sim.now + 5)
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
    found.create_object("deployments", workload("web", 3))
    found.create_object("statefulsets", workload("db", 2, volumeClaimTemplates=[claim]))
    agent = workload("agent")
    del agent["spec"]["replicas"]
    found.create_object("daemonsets", agent)
    found.sim.run_until(found.sim.now + 60)
    return found


def edited(cluster: Cluster, path: Path, edit: dict[str, Any]) -> tuple[Cluster, list[str]]:
    """The copy of a cluster whose lists were edited by functions, and what is not modelled."""
    api = api_of(cluster)
    for plural, change in edit.items():
        path_of = next(each for each in api.lists if each.endswith(f"/{plural}"))
        api.lists[path_of] = change(clone(api.lists[path_of]))
    connected = connection(api, Hosts({}))
    connected.clock.t = cluster.sim.now
    take_snapshot(connected, path / "s.gz")
    copied, simplifier = copy_of(path / "s.gz")
    return copied, simplifier.lines()


def test_a_rollout_whose_revisions_differ_in_what_is_left_out(cluster: Cluster, tmp_path: Path) -> None:
    """Only the environment differs: the Deployment must not take its old set for its present one."""

    def add_old_set(sets: list[Object]) -> list[Object]:
        old = clone(next(item for item in sets if name_of(item).startswith("web-")))
        old["metadata"] |= {"name": "web-old", "uid": "old"}
        sets[0]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "2"
        old["spec"]["replicas"] = 0
        return [*sets, old]

    copied, _ = edited(cluster, tmp_path, {"replicasets": add_old_set})
    copied.sim.run_until(copied.sim.now + 120)
    assert nodes_of(copied.store.list("pods")) == nodes_of(cluster.store.list("pods"))
    found = copied.store.get("replicasets", "default", "web-old")
    assert found is not None
    assert found["spec"]["replicas"] == 0


def test_a_partition_holds_an_earlier_revision(cluster: Cluster, tmp_path: Path) -> None:
    db = clone(cluster.store.get("statefulsets", "default", "db"))
    db["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    db["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    cluster.update_object("statefulsets", db)
    cluster.sim.run_until(cluster.sim.now + 120)
    copy, _ = copy_of(save(cluster, tmp_path / "s.gz"))
    before = {name_of(pod): labels_of(pod).get("controller-revision-hash") for pod in cluster.store.list("pods")}
    assert before["db-0"] != before["db-1"]
    uids = {pod["metadata"]["uid"] for pod in copy.store.list("pods")}
    copy.sim.run_until(copy.sim.now + 120)
    assert {pod["metadata"]["uid"] for pod in copy.store.list("pods")} == uids
    copy.delete_object("pods", "default", "db-0")
    copy.sim.run_until(copy.sim.now + 60)
    again = copy.store.get("pods", "default", "db-0")
    assert again is not None
    assert again["metadata"]["labels"]["controller-revision-hash"] == before["db-0"]


def test_pods_of_an_operator_stay_and_are_not_replaced(cluster: Cluster, tmp_path: Path) -> None:
    def own(pods: list[Object]) -> list[Object]:
        reference = {"apiVersion": "example.com/v1", "kind": "Database", "name": "x", "uid": "y", "controller": True}
        for pod in pods:
            if name_of(pod).startswith("web-"):
                pod["metadata"]["ownerReferences"] = [reference]
                pod["metadata"]["labels"] = {"app": "database"}
        return pods

    copied, lines = edited(cluster, tmp_path, {"pods": own, "deployments": lambda _: [], "replicasets": lambda _: []})
    copied.sim.run_until(copied.sim.now + 300)
    assert nodes_of(copied.store.list("pods")) == nodes_of(cluster.store.list("pods"))
    assert f"owners of other kinds (3): {EFFECTS['owners of other kinds']}" in lines


def test_what_is_not_modelled_is_removed_and_listed(cluster: Cluster, tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    def complicate(spec: Object) -> None:
        container = spec["containers"][0]
        container |= {"readinessProbe": {"periodSeconds": 5}, "ports": [{"containerPort": 80, "hostPort": 80}]}
        container["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "5"]}}, "postStart": {"exec": {}}}
        spec["initContainers"] = [{"name": "init", "image": "i"}]
        spec["affinity"] = {"podAntiAffinity": rules}
        spec["schedulerName"] = "volcano"
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
        spec["topologySpreadConstraints"] = [spread | {"labelSelector": {"matchLabels": {"app": "web"}}}]
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": "scratch", "ephemeral": {}}]

    def owners(items: list[Object]) -> list[Object]:
        for item in items:
            complicate(item["spec"]["template"]["spec"])
        return items

    def pods(items: list[Object]) -> list[Object]:
        for item in items:
            if name_of(item).startswith("web-"):
                complicate(item["spec"])
        return items

    def indexed(_: list[Object]) -> list[Object]:
        job = workload("batch")
        job["spec"] = {"completionMode": "Indexed", "template": {"spec": {"restartPolicy": "Never", "containers": []}}}
        return [job]

    edit = {"deployments": owners, "replicasets": owners, "pods": pods, "jobs": indexed}
    copied, lines = edited(cluster, tmp_path, edit)
    listed = {line.partition(" (")[0] for line in lines}
    assert {
        *("probes", "host ports", "hooks other than preStop.sleep", "init containers"),
        *("schedulers other than default-scheduler", "nodeTaintsPolicy, minDomains and matchLabelKeys"),
        *("ephemeral volumes and resource claims", "workloads that the lab rejects"),
    } <= listed
    assert any(
        line.startswith("first rejected: jobs default/batch: the lab simulates no completionMode") for line in lines
    )
    web = next(pod for pod in copied.store.list("pods") if name_of(pod).startswith("web-"))
    copied.delete_object("pods", "default", name_of(web))
    copied.sim.run_until(copied.sim.now + 60)
    ready = [pod for pod in copied.store.list("pods") if name_of(pod).startswith("web-") and is_ready(pod)]
    assert len(ready) == 3  # the pod was replaced


def test_a_set_whose_pods_begin_with_another_ordinal(cluster: Cluster, tmp_path: Path) -> None:
    def shifted(sets: list[Object]) -> list[Object]:
        sets[0]["spec"]["ordinals"] = {"start": 5}
        return sets

    copied, lines = edited(cluster, tmp_path, {"statefulsets": shifted})
    copied.sim.run_until(copied.sim.now + 60)
    assert nodes_of(copied.store.list("pods")) == nodes_of(cluster.store.list("pods"))
    assert "first rejected: statefulsets default/db: the lab simulates no ordinals.start" in lines


def test_jobs_go_on_and_those_that_are_rejected_hold_nothing_back(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        container = {"name": "c", "image": "app:1"}
        template: Object = {"metadata": {"annotations": {PREFIX + "runs-for": "100"}}}
        template |= {"spec": {"restartPolicy": "Never", "containers": [container]}}
        job = {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, "completions": 2}}
        cluster.create_object("jobs", job)
    cluster.sim.run_until(cluster.sim.now + 20)

    def index(jobs: list[Object]) -> list[Object]:
        next(job for job in jobs if name_of(job) == "bad")["spec"]["completionMode"] = "Indexed"
        return jobs

    copied, _ = edited(cluster, tmp_path, {"jobs": index})
    bad = next(pod for pod in copied.store.list("pods") if name_of(pod).startswith("bad-"))
    copied.delete_object("pods", "default", name_of(bad), 0)
    assert copied.store.get("pods", "default", name_of(bad)) is None
    copied.sim.run_until(copied.sim.now + 400)
    good = copied.store.get("jobs", "default", "good")
    assert good is not None
    assert (good["status"]["succeeded"], condition_status(good, "Complete")) == (2, "True")
    assert copied.store.get("jobs", "default", "bad") is None


def test_a_node_that_was_not_ready_is_off(cluster: Cluster, tmp_path: Path) -> None:
    cluster.machines["w1"].power_off()
    cluster.sim.run_until(cluster.sim.now + 100)
    copy, simplifier = copy_of(save(cluster, tmp_path / "s.gz"))
    node = copy.store.get("nodes", "", "w1")
    assert node is not None
    assert condition_status(node, "Ready") == "Unknown"
    assert copy.machines["w1"].state == "off"
    assert simplifier.found["nodes that are not Ready"] == 1
    assert simplifier.found["kubelets without configuration"] == 1
    copy.machines["w1"].power_on()
    copy.sim.run_until(copy.sim.now + 60)
    node = copy.store.get("nodes", "", "w1")
    assert node is not None
    assert condition_status(node, "Ready") == "True"


def test_a_deletion_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    pod = next(pod for pod in cluster.store.list("pods") if name_of(pod).startswith("web-"))

    def deleting(pods: list[Object]) -> list[Object]:
        for item in pods:
            if name_of(item) == name_of(pod):
                item["metadata"] |= {"deletionTimestamp": "2026-11-23T00:00:00Z", "deletionGracePeriodSeconds": 30}
        return pods

    copied, _ = edited(cluster, tmp_path, {"pods": deleting})
    copied.sim.run_until(copied.sim.now + 10)
    assert copied.store.get("pods", "default", name_of(pod)) is None
    assert sum(name_of(item).startswith("web-") for item in copied.store.list("pods")) == 3


def test_a_claim_that_is_being_deleted_binds_no_new_pod(cluster: Cluster, tmp_path: Path) -> None:
    metadata, volume = {"name": "own", "namespace": "default"}, {"claimName": "own"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.create_object("persistentvolumeclaims", {"metadata": dict(metadata), "spec": claim})
    spec = {
        "containers": [{"name": "c", "image": "app:1"}],
        "volumes": [{"name": "d", "persistentVolumeClaim": volume}],
    }
    for node in cluster.store.list("nodes"):
        cluster.store.update("nodes", {**node, "spec": {**node["spec"], "unschedulable": True}})
    cluster.create_object("pods", {"metadata": dict(metadata), "spec": spec})
    cluster.delete_object("persistentvolumeclaims", "default", "own")
    cluster.sim.run_until(cluster.sim.now + 5)
    for node in cluster.store.list("nodes"):
        cluster.store.update("nodes", {**node, "spec": {**node["spec"], "unschedulable": False}})
    copy, _ = copy_of(save(cluster, tmp_path / "s.gz"))
    copy.sim.run_until(copy.sim.now + 60)
    (pod,) = (pod for pod in copy.store.list("pods") if name_of(pod) == "own")
    assert node_of(pod) == ""
    assert is_deleting(copy.store.get("persistentvolumeclaims", "default", "own") or {})


def test_measured_times_become_behaviour(cluster: Cluster, tmp_path: Path) -> None:
    save(cluster, tmp_path / "s.gz")
    lines = [line for line in lines_of(tmp_path / "s.gz") if line["kind"] != "measured"]
    times = {"number": 4, "p5": 8.0, "p50": 9.0, "p95": 20.0}
    for kind, name, end in (("Deployment", "web", {"killed": 0, "exitCode": 3}), ("DaemonSet", "agent", {"killed": 3})):
        measured = {"namespace": "default", "kind": kind, "name": name, "start": times, "end": times | end}
        lines.append({"kind": "measured", "object": measured})
    (tmp_path / "s.gz").write_bytes(gzip.compress("\n".join(json.dumps(line) for line in lines).encode()))
    copy, _ = copy_of(tmp_path / "s.gz")
    web = {PREFIX + "starts-after": "8", PREFIX + "stops-after": "9", PREFIX + "exit-code": "3"}
    agent = {PREFIX + "starts-after": "8", PREFIX + "ignores-sigterm": "true"}
    for pod in copy.store.list("pods"):
        wanted = web if name_of(pod).startswith("web-") else agent if name_of(pod).startswith("agent-") else {}
        assert wanted.items() <= (pod["metadata"].get("annotations") or {}).items()
    uids = {pod["metadata"]["uid"] for pod in copy.store.list("pods")}
    copy.sim.run_until(copy.sim.now + 60)
    assert {pod["metadata"]["uid"] for pod in copy.store.list("pods")} == uids  # no roll-out by the annotations


def test_an_anonymized_copy_behaves_alike(cluster: Cluster, tmp_path: Path) -> None:
    copy, simplifier = copy_of(save(cluster, tmp_path / "s.gz", anonymize=True))
    before = sorted(len(cluster.store.pods_on(name)) for name in cluster.machines)
    assert set(copy.machines).isdisjoint(cluster.machines)
    uids = {pod["metadata"]["uid"] for pod in copy.store.list("pods")}
    copy.sim.run_until(copy.sim.now + 120)
    assert sorted(len(copy.store.pods_on(name)) for name in copy.machines) == before
    assert {pod["metadata"]["uid"] for pod in copy.store.list("pods")} == uids
    assert all(is_ready(pod) for pod in copy.store.list("pods"))
    assert simplifier.lines() == []
    victim = next(node_of(pod) for pod in copy.store.list("pods") if name_of(pod).endswith("-0"))
    copy.machines[victim].power_off()
    copy.sim.run_until(copy.sim.now + 500)
    assert any(is_deleting(pod) for pod in copy.store.pods_on(victim))


HEADER = b'{"kind": "header", "object": {"format": 1, "taken": 5.0, "kubernetes": "v1.36.2"}}\n'
NODE = b'{"kind": "nodes", "object": {"metadata": {"name": "n"}}}\n'


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"plain text", "not a snapshot"),
        (gzip.compress(HEADER + NODE)[:-12], "not a snapshot"),
        (gzip.compress(b'{"t": 1, "kind": "meta", "object": {}}\n'), "the first line is no header"),
        (gzip.compress(HEADER.replace(b'"format": 1', b'"format": 2')), "format 2 of a snapshot is not known"),
        (gzip.compress(HEADER.replace(b"5.0", b'""') + NODE), "not a snapshot: Expected `float`"),
        (gzip.compress(HEADER.replace(b"5.0", b"1e30") + NODE), "not a snapshot: Expected `float` <="),
        (gzip.compress(HEADER.replace(b"5.0", b'5.0, "missing": [null]') + NODE), "not a snapshot: Expected `object`"),
        (gzip.compress(HEADER), "the snapshot has no nodes"),
        (gzip.compress(b""), "the snapshot has no nodes"),
        (gzip.compress(HEADER + b'{"kind": "pods"}\n'), "not a snapshot"),
        (gzip.compress(HEADER + NODE + NODE.replace(b"nodes", b"pods")), "pod n has no containers"),
    ],
    ids=[
        "plain",
        "truncated",
        "recording",
        "later-format",
        "no-time",
        "far-time",
        "missing",
        "no-nodes",
        "empty",
        "no-object",
        "no-containers",
    ],
)
def test_files_that_are_no_snapshots(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "s.gz").write_bytes(data)
    with pytest.raises(SnapshotError, match=why):
        read_snapshot(tmp_path / "s.gz")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        read_snapshot(tmp_path / "none.gz")

"""StorageClasses, access modes, topology, drivers without attach, and what becomes of the claims of a StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.store import clone
from chaos.lab.cluster import Cluster
from chaos.lab.objects import name_of, node_of
from chaos.lab.recorded.user_operations import cordon
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.simkit import Object, events, run, workload

ZONE = "topology.kubernetes.io/zone"
NODES = {"cp": "a", "a1": "a", "b1": "b", "b2": "b"}
SIZE = {"resources": {"requests": {"storage": "1Gi"}}}
RWO, RWX, ROX, RWOP = "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"
CSI = {"driver": "csi.example.com", "volumeHandle": "disk-1"}


def _cluster() -> Cluster:
    nodes = [NodeSpec(name=n, role="control-plane" if n == "cp" else "worker", zone=z) for n, z in NODES.items()]
    cluster = Cluster(LabSpec(nodes=nodes, seed=3))
    cluster.start()
    run(cluster, 3.0)
    cluster.create_object("namespaces", {"metadata": {"name": "demo"}})
    return cluster


def _claim(cluster: Cluster, mode: str = RWO, kind: str = "", name: str = "data") -> None:
    spec: Object = {"accessModes": [mode], **SIZE}
    if kind:
        spec["storageClassName"] = kind
    cluster.create_object("persistentvolumeclaims", {"metadata": {"name": name, "namespace": "demo"}, "spec": spec})


def _class(cluster: Cluster, mode: str = "Immediate", **more: Any) -> None:
    body = {"metadata": {"name": "fast"}, "provisioner": "csi.example.com", "volumeBindingMode": mode, **more}
    cluster.create_object("storageclasses", body)


def _user(cluster: Cluster, replicas: int = 1, name: str = "web", **pod: Any) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.create_object("deployments", workload(name, replicas=replicas, pod={"volumes": volumes, **pod}))


def _places(cluster: Cluster) -> list[str]:
    pods = cluster.store.list("pods", "demo")
    return sorted(node_of(pod) for pod in pods if pod["status"]["phase"] == "Running")


def _phase(cluster: Cluster, name: str = "data") -> str:
    claim = cluster.store.get("persistentvolumeclaims", "demo", name)
    return str(claim["status"]["phase"]) if claim else ""


def _attached(cluster: Cluster) -> list[str]:
    return sorted(item["spec"]["nodeName"] for item in cluster.store.list("volumeattachments"))


def _spread() -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": "web"}}}]}


@pytest.mark.parametrize(("mode", "nodes"), [(RWX, 3), (ROX, 3), (RWO, 1)])
def test_only_shared_volumes_are_attached_to_several_nodes(mode: str, nodes: int) -> None:
    """ADU IsMultiAttachAllowed."""
    cluster = _cluster()
    _claim(cluster, mode)
    _user(cluster, 3, **_spread())
    run(cluster, 40.0)
    assert len(_places(cluster)) == len(_attached(cluster)) == nodes
    assert bool(events(cluster, "FailedAttachVolume")) is (nodes == 1)


def test_a_second_pod_waits_for_a_read_write_once_pod_claim() -> None:
    cluster = _cluster()
    _claim(cluster, RWOP)
    _user(cluster, 2)
    run(cluster, 30.0)
    assert len(_places(cluster)) == 1
    (message,) = {event["message"] for event in events(cluster, "FailedScheduling")} - {_unbound(4)}
    reason = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    assert message == f"0/4 nodes are available: 4 node(s) unavailable due to {reason}."
    first = next(pod for pod in cluster.store.list("pods", "demo") if node_of(pod))
    cluster.delete_object("pods", "demo", name_of(first))
    run(cluster, 30.0)
    assert len(_places(cluster)) == 1
    assert cluster.store.get("pods", "demo", name_of(first)) is None


def _unbound(nodes: int) -> str:
    return f"0/{nodes} nodes are available: pod has unbound immediate PersistentVolumeClaims."


def test_a_driver_without_attach() -> None:
    """csi_plugin.go CanAttach: no VolumeAttachment, nothing in volumesInUse; a lost node blocks no replacement."""
    cluster = _cluster()
    cluster.create_object("csidrivers", {"metadata": {"name": "csi.example.com"}, "spec": {"attachRequired": False}})
    _class(cluster)
    _claim(cluster, kind="fast")
    _user(cluster)
    run(cluster, 15.0)
    (place,) = _places(cluster)
    node = cluster.store.get("nodes", "", place)
    assert node is not None
    assert not {"volumesInUse", "volumesAttached"} & set(node["status"])
    cluster.machines[place].power_off()
    run(cluster, 60.0)
    cluster.delete_object("pods", "demo", name_of(next(iter(cluster.store.list("pods", "demo")))), 0)
    run(cluster, 5.0)
    assert len(_places(cluster)) == 1
    assert _attached(cluster) == []


def test_delayed_binding_waits_for_a_pod_and_follows_its_node() -> None:
    cluster = _cluster()
    _class(cluster, "WaitForFirstConsumer")
    _claim(cluster, kind="fast")
    run(cluster, 10.0)
    assert _phase(cluster) == "Pending"
    assert not cluster.store.list("persistentvolumes")
    _user(cluster, nodeSelector={"kubernetes.io/hostname": "b2"})
    run(cluster, 20.0)
    assert (_phase(cluster), _places(cluster)) == ("Bound", ["b2"])
    (volume,) = cluster.store.list("persistentvolumes")
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["b"]}]
    assert volume["spec"]["csi"]["driver"] == "csi.example.com"


def test_a_volume_of_a_zone_keeps_its_pod_in_the_zone() -> None:
    cluster = _cluster()
    _class(cluster, "WaitForFirstConsumer")
    _claim(cluster, kind="fast")
    _user(cluster, nodeSelector={ZONE: "b"})
    run(cluster, 20.0)
    (place,) = _places(cluster)
    cluster.delete_object("deployments", "demo", "web")
    run(cluster, 45.0)
    for name in ("b1", "b2"):
        cordon(cluster, name)
    _user(cluster, name="next")
    run(cluster, 10.0)
    assert (place[0], _places(cluster)) == ("b", [])
    message = events(cluster, "FailedScheduling")[-1]["message"]
    assert "1 node(s) didn't match PersistentVolume's node affinity" in message
    assert "2 node(s) were unschedulable" in message
    cordon(cluster, "b1", unschedulable=False)
    run(cluster, 30.0)
    assert _places(cluster) == ["b1"]


def test_allowed_topologies() -> None:
    cluster = _cluster()
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    _class(cluster, "WaitForFirstConsumer", allowedTopologies=allowed)
    _claim(cluster, kind="fast")
    _user(cluster)
    run(cluster, 20.0)
    assert _places(cluster) == ["a1"]


def _volume(node: str, **more: Any) -> Object:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    spec = {"accessModes": [RWO], "capacity": {"storage": "2Gi"}, "csi": CSI, "storageClassName": "by-hand", **more}
    return {"metadata": {"name": "disk-1"}, "spec": spec | {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_a_volume_made_by_hand(mode: str) -> None:
    cluster = _cluster()
    body = {"metadata": {"name": "by-hand"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}
    cluster.create_object("storageclasses", body)
    _claim(cluster, kind="by-hand")
    _user(cluster)
    run(cluster, 5.0)
    assert _phase(cluster) == "Pending"
    cluster.create_object("persistentvolumes", _volume("b1"))
    run(cluster, 20.0)
    assert (_phase(cluster), _places(cluster)) == ("Bound", ["b1"])
    cluster.delete_object("deployments", "demo", "web")
    cluster.delete_object("persistentvolumeclaims", "demo", "data")
    run(cluster, 60.0)
    (volume,) = cluster.store.list("persistentvolumes")
    assert (volume["status"]["phase"], _phase(cluster)) == ("Released", "")


@pytest.mark.parametrize(
    ("deleted", "scaled", "after_scale", "after_delete"),
    [
        ("Retain", "Retain", 3, 3),
        ("Retain", "Delete", 1, 1),
        ("Delete", "Retain", 3, 0),
        ("Delete", "Delete", 1, 0),
    ],
)
def test_retention_of_claims(deleted: str, scaled: str, after_scale: int, after_delete: int) -> None:
    """kubernetes.io/docs, "StatefulSets", PersistentVolumeClaim retention."""
    cluster = _cluster()
    templates = [{"metadata": {"name": "data"}, "spec": {"accessModes": [RWO], **SIZE}}]
    body = workload("db", replicas=3, volumeClaimTemplates=templates)
    body["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": deleted, "whenScaled": scaled}
    cluster.create_object("statefulsets", body)
    run(cluster, 90.0)
    owner = clone(cluster.store.get("statefulsets", "demo", "db"))
    owner["spec"]["replicas"] = 1
    cluster.update_object("statefulsets", owner)
    run(cluster, 60.0)
    assert len(cluster.store.list("persistentvolumeclaims", "demo")) == after_scale
    assert len(_places(cluster)) == 1
    cluster.delete_object("statefulsets", "demo", "db")
    run(cluster, 60.0)
    assert len(cluster.store.list("persistentvolumeclaims", "demo")) == after_delete
    assert len(cluster.store.list("persistentvolumes")) == after_delete


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        ("storageclasses", {}),
        ("storageclasses", {"provisioner": "x", "volumeBindingMode": "Sometimes"}),
        ("persistentvolumes", {"spec": {"hostPath": {"path": "/"}, "accessModes": [RWO]}}),
        ("persistentvolumes", {"spec": {"csi": CSI, "accessModes": [RWO]}}),
    ],
)
def test_what_is_not_simulated_is_rejected(plural: str, body: Object) -> None:
    with pytest.raises(InvalidError):
        _cluster().create_object(plural, {"metadata": {"name": "x"}, **body})

"""An anonymized snapshot shows none of 200 planted texts, and what belongs together still does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.app.snapshot.take import take_snapshot
from chaos.cluster.snapshot.anonymize import Anonymizer
from chaos.core.ports import Response
from tests.kit.listed_cluster import Hosts, ListedCluster, connection, lines_of, node

Object = dict[str, Any]
PASSWORDS = "hunter2-correct-horse"


class Planter:
    """Texts of a company, each of them once."""

    def __init__(self) -> None:
        self.planted: list[str] = []

    def __call__(self, kind: str, form: str = "apollo{}-{}") -> str:
        self.planted.append(form.format(len(self.planted), kind))
        return self.planted[-1]


def workload(plant: Planter, name: str, namespace: str) -> Object:
    labels = {
        "app": plant("app"),
        plant("key", "apollo{}.example.com/{}"): plant("value"),
        "tier": plant("tier", "Apollo{}.{}"),
    }
    container = {
        "name": plant("container"),
        "image": plant("image", "registry.apollo{}.example.com:5000/team/{}:1.2.3"),
        "env": [{"name": plant("variable"), "value": plant("secret")}],
        "args": [plant("argument", "--password=apollo{}{}")],
        "resources": {"requests": {"cpu": "10m", plant("device", "apollo{}.example.com/{}"): "1"}},
        "volumeMounts": [{"name": "v", "mountPath": plant("path", "/srv/apollo{}/{}")}],
        "livenessProbe": {"httpGet": {"host": plant("host"), "path": plant("path", "/apollo{}/{}")}},
        "lifecycle": {"preStop": {"exec": {"command": [plant("command")]}}},
    }
    requirement = {"key": plant("affinity-key", "apollo{}/{}"), "operator": "In", "values": [plant("affinity-value")]}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": plant("topology", "apollo{}/{}")}
    spec = {
        "containers": [container],
        "volumes": [
            {"name": plant("volume"), "secret": {"secretName": plant("secret-name")}},
            {"name": "v", "hostPath": {"path": plant("host-path", "/apollo{}/{}")}},
        ],
        "nodeSelector": {plant("selector-key"): plant("selector-value")},
        "schedulerName": plant("scheduler"),
        "serviceAccountName": plant("account"),
        "runtimeClassName": plant("runtime"),
        "priorityClassName": plant("priority"),
        "tolerations": [{"key": plant("taint-key"), "operator": "Equal", "value": plant("taint-value")}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [requirement]}]
                }
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        },
    }
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": plant("configuration", '{{"password":"apollo{}{}"}}'),
        plant("annotation-key", "apollo{}.example.com/{}"): plant("annotation"),
    }
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "annotations": annotations,
        "uid": f"uid-{name}",
    }
    metadata["finalizers"] = [plant("finalizer", "apollo{}.example.com/{}")]
    metadata["managedFields"] = [{"manager": plant("manager")}]
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return {"metadata": metadata, "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}}


def pod_of(plant: Planter, owner: Object, name: str, node_name: str) -> Object:
    template, namespace = owner["spec"]["template"], owner["metadata"]["namespace"]
    reference = {
        "kind": "StatefulSet",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        **template["metadata"],
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "ownerReferences": [reference],
    }
    claim: Object = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
    spec = {
        **template["spec"],
        "nodeName": node_name,
        "volumes": [*template["spec"]["volumes"], claim],
        "hostname": name,
    }
    status = {
        "phase": "Running",
        "podIP": plant("pod-address", "10.77.{}.9"),
        "message": plant("message", "the host apollo{} failed: {}"),
        "containerStatuses": [
            {
                "name": "c",
                "imageID": plant("digest"),
                "state": {
                    "waiting": {"reason": plant("why", "Apollo{}{}"), "message": plant("waiting", "apollo{} {}")}
                },
            }
        ],
        "conditions": [
            {"type": "Ready", "status": "True", "message": plant("condition")},
            {"type": plant("gate", "Apollo{}Ready{}"), "status": "False", "reason": plant("gate-reason", "Apollo{}{}")},
        ],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def company(plant: Planter) -> ListedCluster:
    """A cluster of a company with a workload in each of four namespaces."""
    names = [plant("node", "apollo{}.{}.example.com") for _ in range(4)]
    nodes = [node(name, f"10.9.8.{number}") for number, name in enumerate(names)]
    lists: dict[str, list[Object]] = {
        plural: [] for plural in ("statefulsets", "pods", "namespaces", "services", "events")
    }
    lists |= {
        plural: [] for plural in ("persistentvolumeclaims", "persistentvolumes", "priorityclasses", "storageclasses")
    }
    for each in nodes:
        each["metadata"]["labels"][plant("node-key", "node-role.kubernetes.io/apollo{}-{}")] = plant("node-value")
        each["metadata"]["annotations"] = {plant("annotation-key"): plant("annotation")}
        each["spec"] = {
            "providerID": plant("provider", "aws:///eu/apollo{}/{}"),
            "podCIDR": plant("network", "10.{}.0.0/24"),
        }
        each["spec"]["taints"] = [{"key": plant("taint"), "value": plant("taint-value"), "effect": "NoSchedule"}]
        each["status"]["nodeInfo"] |= {"osImage": plant("system", "Apollo{} {}"), "machineID": plant("machine-id")}
        each["status"]["images"] = [{"names": [plant("node-image")]}]
    for number, node_name in enumerate(names):
        namespace, name = plant("namespace"), plant("set")
        owner = workload(plant, name, namespace)
        lists["statefulsets"].append(owner)
        lists["namespaces"].append({"metadata": {"name": namespace, "labels": {"team": plant("team")}}})
        lists["pods"] += [pod_of(plant, owner, f"{name}-{ordinal}", node_name) for ordinal in (0, 1)]
        claim = {"name": f"data-{name}-0", "namespace": namespace}
        volume, kind = plant("volume"), plant("class")
        lists["persistentvolumeclaims"].append(
            {"metadata": claim, "spec": {"volumeName": volume, "storageClassName": kind}}
        )
        source: Object = {"driver": plant("driver", "csi.apollo{}.{}.com"), "volumeHandle": plant("handle")}
        source["nodePublishSecretRef"] = {"name": plant("volume-secret")}
        storage = {"csi": source, "claimRef": claim, "storageClassName": kind, "nfs": {"server": plant("server")}}
        lists["persistentvolumes"].append({"metadata": {"name": volume}, "spec": storage})
        ports = [{"port": 80, "name": plant("port"), "targetPort": plant("target-port")}]
        service = {
            "clusterIP": plant("service-address", "10.96.{}.1"),
            "externalName": plant("external"),
            "ports": ports,
        }
        lists["services"].append({"metadata": {"name": plant("service"), "namespace": namespace}, "spec": service})
        lists["priorityclasses"].append(
            {"metadata": {"name": plant("class")}, "description": plant("description"), "value": 7}
        )
        lists["storageclasses"].append(
            {
                "metadata": {"name": kind},
                "provisioner": plant("provisioner"),
                "parameters": {plant("parameter"): plant("value")},
            }
        )
        about = {"kind": "Pod", "namespace": namespace, "name": f"{name}-0", "uid": f"uid-{name}-0"}
        text = f'Successfully pulled image "{plant("pulled")}" in 1.5s (1.5s including waiting)'
        times = {"firstTimestamp": "2026-11-23T07:00:00Z", "lastTimestamp": f"2026-11-23T07:00:0{number}Z"}
        lists["events"].append({"involvedObject": about, "reason": "Pulled", "message": text, **times})
    kube = ListedCluster(
        lists | {"nodes": nodes}, groups=("apps", *(plant("group", "apollo{}.{}.com") for _ in range(3)))
    )
    kube.lists["/api/v1/pods"][0]["spec"][plant("field", "apollo{}{}")] = 1
    kube.configs = {
        "10.9.8.0": Response(200, json.dumps({"kubeletconfig": {"clusterDomain": plant("domain")}}).encode(), {})
    }
    kube.refused = {"/apis/batch/v1/jobs": 403}
    return kube


def test_none_of_200_planted_texts_is_in_the_file(tmp_path: Path) -> None:
    plant = Planter()
    kube = company(plant)
    header = take_snapshot(connection(kube, Hosts({}), "v1.36.2-apollo"), tmp_path / "s.gz", anonymize=True)
    text = gzip.decompress((tmp_path / "s.gz").read_bytes()).decode().lower()
    assert len(plant.planted) >= 200
    assert len(set(plant.planted)) == len(plant.planted)
    assert [each for each in plant.planted if each.lower() in text] == []
    assert [part for part in ("apollo", "10.9.8.", "planted-user", "uid-") if part in text] == []
    assert header.kubernetes == "v1.36.2"
    plain = tmp_path / "plain.gz"
    take_snapshot(connection(company(Planter())), plain)
    shown = gzip.decompress(plain.read_bytes()).decode()
    secrets = [
        each for each in plant.planted if each.rpartition("-")[2] in ("secret", "argument", "configuration", "variable")
    ]
    assert secrets
    assert (
        len([each for each in plant.planted if each in shown]) > 60
    )  # names that may be shown, and so are planted well
    assert [each for each in secrets if each in shown] == []


def test_what_belongs_together_still_does(tmp_path: Path) -> None:
    take_snapshot(connection(company(Planter())), tmp_path / "s.gz", anonymize=True)
    lines = lines_of(tmp_path / "s.gz")
    by_kind: dict[str, list[Object]] = {}
    for line in lines[1:]:
        by_kind.setdefault(line["kind"], []).append(line["object"])
    nodes = {each["metadata"]["name"] for each in by_kind["nodes"]}
    assert nodes == {each["metadata"]["labels"]["kubernetes.io/hostname"] for each in by_kind["nodes"]}
    sets = {each["metadata"]["name"]: each for each in by_kind["statefulsets"]}
    claims = {each["metadata"]["name"] for each in by_kind["persistentvolumeclaims"]}
    assert len(sets) == 4
    for pod in by_kind["pods"]:
        owner = sets[pod["metadata"]["ownerReferences"][0]["name"]]
        name, ordinal = owner["metadata"]["name"], pod["metadata"]["name"][-1]
        assert pod["metadata"]["name"] == f"{name}-{ordinal}"
        assert pod["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert owner["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["nodeName"] in nodes
        claim = pod["spec"]["volumes"][-1]["persistentVolumeClaim"]["claimName"]
        assert ordinal == "1" or claim in claims
        assert claim.endswith(f"-{name}-{ordinal}")


def test_another_key_gives_other_names(tmp_path: Path) -> None:
    texts = []
    for number in range(2):
        take_snapshot(connection(company(Planter())), tmp_path / f"{number}.gz", anonymize=True)
        texts.append(
            {
                line["object"]["metadata"]["name"]
                for line in lines_of(tmp_path / f"{number}.gz")
                if line["kind"] == "pods"
            }
        )
    assert texts[0].isdisjoint(texts[1])


NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", fullmatch=True)


@given(st.lists(NAMES, min_size=1, max_size=40, unique=True))
def test_different_names_stay_different_and_are_names(names: list[str]) -> None:
    anonymizer = Anonymizer(b"k" * 32)
    shown = [anonymizer.text(name) for name in names]
    assert len(set(shown)) == len(names)
    assert [anonymizer.text(name) for name in names] == shown
    assert all(len(name) <= 63 and name[0].isalnum() and name[-1].isalnum() for name in shown)


@pytest.mark.parametrize("address", ["10.0.0.7", "ip-10-0-1-23.ec2.internal", "192.168.1.1", "10-0-0-1"])
def test_no_number_of_an_address_is_shown(address: str) -> None:
    shown = Anonymizer(b"k" * 32).text(address)
    assert not any(part.isdigit() for part in shown.replace(".", "-").split("-"))

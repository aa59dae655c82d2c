"""The manifests of a game day: valid by Kubernetes' schemas, with the least that the day needs, and no secret."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.app.day.deploy import DeployOptions
from chaos.core.permission import role_manifests
from chaos.gameday.deploy.deployment import NodePreferences, Port, Storage
from chaos.gameday.deploy.manifests import helm_values, manifests
from tests.kit.deployments import by_kind, faults, make

S3 = DeployOptions("nodefall", "nodefall:1", Storage("5Gi", "fast", "bucket/prefix"))
SCHEDULE = {"cron": "0 10 * * TUE#1", "missed": "run"}


def pod_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = by_kind(found, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("options", [None, S3], ids=["volume", "bucket"])
def test_every_object_is_valid(tmp_path: Path, options: DeployOptions | None) -> None:
    deployment, _ = make(tmp_path, options, schedule=SCHEDULE)
    found = manifests(deployment)
    assert [fault for manifest in found for fault in faults(manifest)] == []
    kinds = [manifest["kind"] for manifest in found if "Role" not in manifest["kind"]]
    jobs = ["CronJob"] * (2 if options else 1)
    assert kinds == [
        *("Namespace", "ServiceAccount", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy"),
        *jobs,
    ]


def test_a_fault_is_found(tmp_path: Path) -> None:
    found = manifests(make(tmp_path)[0])
    job = by_kind(found, "CronJob")
    job["spec"]["concurrency"] = "Forbid"
    assert "concurrency" in faults(job)[0]


def test_the_roles_are_those_of_rbac(tmp_path: Path) -> None:
    deployment, _ = make(tmp_path)
    account = {"kind": "ServiceAccount", "name": "nodefall-days", "namespace": "nodefall"}
    expected = role_manifests(deployment.permissions, "nodefall-days", account)
    found = [manifest for manifest in manifests(deployment) if "Role" in manifest["kind"]]
    for manifest in found:
        assert manifest["metadata"].pop("labels") == deployment.labels
    assert found == expected


def test_a_schedule(tmp_path: Path) -> None:
    window = {"zone": "Europe/Berlin"}
    spec = by_kind(manifests(make(tmp_path, schedule=SCHEDULE, window=window)[0]), "CronJob")["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["suspend"]) == ("0 10 * * 2", "Europe/Berlin", False)
    assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("Forbid", 92 * 86400)
    job = spec["jobTemplate"]["spec"]
    assert job["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"] == [1, 2, 4, 64, 70]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (6, "Never")
    assert "activeDeadlineSeconds" not in job  # a day waits for its window


def test_without_a_schedule_nothing_starts_by_itself(tmp_path: Path) -> None:
    spec = by_kind(manifests(make(tmp_path)[0]), "CronJob")["spec"]
    assert spec["suspend"] is True


@pytest.mark.parametrize("options", [None, S3], ids=["volume", "bucket"])
def test_pods_have_no_more_than_they_need(tmp_path: Path, options: DeployOptions | None) -> None:
    """As the restricted Pod Security Standard has it, and with a read-only file system."""
    for manifest in manifests(make(tmp_path, options)[0]):
        if manifest["kind"] != "CronJob":
            continue
        pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
        assert context["runAsUser"] == context["fsGroup"] == 65532
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert all("hostPath" not in volume for volume in pod["volumes"])
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_pod_knows_itself_and_names_the_day_after_its_job(tmp_path: Path) -> None:
    container = pod_of(manifests(make(tmp_path)[0]))["containers"][0]
    env = {each["name"]: each for each in container["env"]}
    assert env["NODEFALL_POD_UID"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.uid"}}
    assert "job-name" in env["NODEFALL_JOB"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert container["args"] == [
        *("gameday", "run", "/etc/nodefall/day.yaml", "--inventory", "/etc/nodefall/staging.yaml"),
        *("--reports", "/reports", "--id", "$(NODEFALL_JOB)", "--scheduled", "--yes", "--plain"),
    ]


def test_changed_files_are_another_config_map(tmp_path: Path) -> None:
    """So a day that has begun keeps its own."""
    first = by_kind(manifests(make(tmp_path)[0]), "ConfigMap")
    again = by_kind(manifests(make(tmp_path)[0]), "ConfigMap")
    other = by_kind(manifests(make(tmp_path, title="Other")[0]), "ConfigMap")
    assert first["immutable"] is True
    assert first == again
    assert first["metadata"]["name"] != other["metadata"]["name"]


def test_only_what_the_day_uses_can_be_reached(tmp_path: Path) -> None:
    deployment, _ = make(tmp_path)
    deployment = replace(deployment, ports=(Port(22), Port(623, "UDP")))
    spec = by_kind(manifests(deployment), "NetworkPolicy")["spec"]
    assert (spec["ingress"], spec["policyTypes"]) == ([], ["Ingress", "Egress"])
    names, used = spec["egress"]
    assert names["ports"] == [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
    assert used["ports"] == [{"port": 22, "protocol": "TCP"}, {"port": 623, "protocol": "UDP"}]
    upload = by_kind(manifests(replace(deployment, storage=S3.storage)), "NetworkPolicy")["spec"]
    assert {"port": 443, "protocol": "TCP"} in upload["egress"][1]["ports"]
    template = by_kind(manifests(deployment), "CronJob")["spec"]["jobTemplate"]["spec"]["template"]
    assert spec["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_where_the_pod_runs(tmp_path: Path) -> None:
    preferences = NodePreferences(("a", "b"), (("zone", "x"),), ("ingress",), control_planes=True)
    pod = pod_of(manifests(replace(make(tmp_path)[0], preferences=preferences)))
    affinity = pod["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in ("a", "b")]
    }
    rules = [each["preference"] for each in affinity["preferredDuringSchedulingIgnoredDuringExecution"]]
    assert {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["x"]}]} in rules
    assert {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["ingress"]}]} in rules
    assert pod["tolerations"][0]["key"] == "node-role.kubernetes.io/control-plane"
    free = pod_of(manifests(replace(make(tmp_path)[0], preferences=NodePreferences())))
    assert not {"affinity", "tolerations"} & free.keys()


def test_existing_namespaces_are_not_relabelled(tmp_path: Path) -> None:
    deployment, _ = make(tmp_path, DeployOptions("kube-system", "nodefall:1"))
    assert all(manifest["kind"] != "Namespace" for manifest in manifests(deployment))


def test_the_upload_reads_reports_only(tmp_path: Path) -> None:
    deployment, _ = make(tmp_path, S3)
    *_, upload = manifests(deployment)
    pod = upload["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][:3] == ["copy", "/reports", ":s3:bucket/prefix"]
    assert pod["automountServiceAccountToken"] is False
    assert "@sha256:" in container["image"]
    assert next(mount for mount in container["volumeMounts"] if mount["name"] == "reports")["readOnly"] is True
    claim = by_kind(manifests(deployment), "PersistentVolumeClaim")["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("fast", "5Gi")


def test_values_are_plain(tmp_path: Path) -> None:
    values = helm_values(make(tmp_path, S3)[0])
    assert json.loads(json.dumps(values)) == values

"""The manifests of a game day: valid by Kubernetes' schemas, with the least that the day needs, and no secret.

Files of a pod: at the paths that the documents name, in as few mounts as possible, none over another.

What a fleet applies: valid objects, apart from those of a CronJob, and one Job for each day and plan.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.app.day.deploy import DeployOptions
from chaos.core.errors import UsageError
from chaos.core.permission import role_manifests
from chaos.gameday.deploy.deployment import DayFile, Deployment, NodePreferences, Port, SecretFile, Storage
from chaos.gameday.deploy.manifests import cron_job, fleet_job, fleet_job_name, helm_values, manifests, shared_manifests
from chaos.gameday.deploy.pod import config_data, config_keys, file_volumes
from chaos.gameday.fleet_document import MAX_FLEET_NAME
from tests.kit.deployments import by_identity, by_kind, faults, make

S3 = DeployOptions("nodefall", "nodefall:1", Storage("5Gi", "fast", "bucket/prefix"))
SCHEDULE = {"cron": "0 10 * * TUE#1", "missed": "run"}
NAMES = st.from_regex(r"[a-z_.][a-z_. ]{0,3}", fullmatch=True).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/etc/nodefall/" + "/".join(parts))
PLAN = "a" * 64


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


def test_messages_link_reports_by_the_url_that_was_given(tmp_path: Path) -> None:
    url = "https://reports.example.com/$(HOME)/staging"
    deployment, _ = make(tmp_path, replace(S3, report_url=url))
    job = fleet_job(deployment, "d1", PLAN)["spec"]["template"]["spec"]["containers"][0]
    for args in (pod_of(manifests(deployment))["containers"][0]["args"], helm_values(deployment)["args"], job["args"]):
        given = args[args.index("--report-url") + 1]
        assert given.replace("$$", "$") == url
        assert "$$(HOME)" in given, "the kubelet replaces $(NAME)"


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


def deployment(files: list[str], secrets: list[str] | None = None) -> Deployment:
    return Deployment(
        day="days",
        namespace="nodefall",
        image="nodefall",
        gameday="/etc/nodefall/day.yaml",
        inventory="/etc/nodefall/staging.yaml",
        files=tuple(DayFile(path, f"text of {path}") for path in files),
        permissions=(),
        secret="keys",
        secret_files=tuple(SecretFile(path, posixpath.basename(path)) for path in secrets or []),
    )


def shown(wanted: Deployment) -> dict[str, str]:
    """What the container has: the source of each file, by its path."""
    volumes, mounts = file_volumes(wanted)
    roots = {mount["name"]: mount["mountPath"] for mount in mounts}
    assert all(mount["readOnly"] for mount in mounts)
    found = {}
    for volume in volumes:
        for source in volume["projected"]["sources"]:
            ((kind, body),) = source.items()
            for item in body["items"]:
                found[posixpath.join(roots[volume["name"]], item["path"])] = f"{kind} {item['key']}"
    return found


@given(st.lists(PATHS, min_size=1, max_size=6, unique=True))
def test_each_file_has_a_key_of_its_own(paths: list[str]) -> None:
    keys = config_keys([DayFile(path, "") for path in paths])
    assert sorted(keys) == sorted(paths)
    assert len(set(keys.values())) == len(paths)
    data = config_data(deployment(paths))
    assert {data[keys[path]] for path in paths} == {f"text of {path}" for path in paths}
    assert set(shown(deployment(paths))) == set(paths)


def test_mounts_are_not_nested() -> None:
    wanted = deployment(
        ["/etc/nodefall/a/day.yaml", "/home/nodefall/.kube/config"],
        ["/home/nodefall/.kube/pki/ca.pem", "/etc/nodefall/a/keys/id", "/home/nodefall/.ssh/chaos"],
    )
    _, mounts = file_volumes(wanted)
    assert [mount["mountPath"] for mount in mounts] == ["/etc/nodefall", "/home/nodefall/.kube", "/home/nodefall/.ssh"]
    assert shown(wanted)["/home/nodefall/.kube/pki/ca.pem"] == "secret ca.pem"
    assert shown(wanted)["/etc/nodefall/a/keys/id"] == "secret id"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/key",
        "/key",
        "/tmp/key",
        "/reports/key",
        "/usr/lib/x/key",
        "/home/nodefall/key",
        "/var/run/key",
        "/app/key",
    ],
)
def test_a_folder_that_is_taken_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="names a file in"):
        file_volumes(deployment(["/etc/nodefall/day.yaml"], [path]))


def test_what_does_not_fit_into_a_config_map_is_refused(tmp_path: Path) -> None:
    found, _ = make(tmp_path)
    assert len(config_data(found)) == 4
    big = Deployment(
        **{**{name: getattr(found, name) for name in found.__slots__}, "files": (DayFile("/x", "é" * 500_001),)}
    )
    with pytest.raises(UsageError, match=r"1,000,003 bytes: a ConfigMap takes"):
        config_data(big)


@pytest.fixture(scope="module")
def fleet_deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    made, _ = make(tmp_path_factory.mktemp("day"))
    return replace(made, fleet="europe")


def test_all_objects_fit_the_schemas_of_kubernetes(fleet_deployment: Deployment) -> None:
    objects = [*shared_manifests(fleet_deployment), fleet_job(fleet_deployment, "d1", PLAN)]
    assert [fault for each in objects for fault in faults(each)] == []
    assert {each["metadata"]["labels"]["nodefall.dev/fleet"] for each in objects if each["kind"] != "Namespace"} == {
        "europe"
    }


def test_nothing_is_shared_with_a_cron_job(fleet_deployment: Deployment) -> None:
    """Neither can delete what the other needs, whatever their names are."""
    other = replace(fleet_deployment, fleet="", day=f"fleet-{fleet_deployment.day}")
    shared = by_identity(shared_manifests(fleet_deployment)).keys() & by_identity(manifests(other)).keys()
    assert {kind for kind, _, _ in shared} == {"Namespace"}


def test_the_pod_is_that_of_the_cron_job(fleet_deployment: Deployment) -> None:
    """As careful, and with the same rights; it begins at once, on this very day."""
    job = fleet_job(fleet_deployment, "d1", PLAN)["spec"]
    cron = cron_job(fleet_deployment)["spec"]["jobTemplate"]["spec"]
    own, other = job["template"]["spec"]["containers"][0], cron["template"]["spec"]["containers"][0]
    assert own["args"][-4:] == ["--id", "d1", "--yes", "--plain"]
    assert "--scheduled" not in own["args"]
    assert own.pop("terminationMessagePolicy") == "FallbackToLogsOnError"
    own["args"] = other["args"]
    assert job == cron


def test_the_name_of_a_job_is_that_of_its_day_and_plan(fleet_deployment: Deployment) -> None:
    name = fleet_job_name(fleet_deployment, "d1", PLAN)
    assert (
        name
        == fleet_job_name(fleet_deployment, "d1", PLAN)
        == fleet_job(fleet_deployment, "d1", PLAN)["metadata"]["name"]
    )
    assert (
        len({name, fleet_job_name(fleet_deployment, "d2", PLAN), fleet_job_name(fleet_deployment, "d1", "b" * 64)}) == 3
    )
    assert len(fleet_job_name(replace(fleet_deployment, fleet="f" * MAX_FLEET_NAME), "d1", PLAN)) <= 63

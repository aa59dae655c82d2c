"""A game day as it is deployed: its manifests on an API server, its rights, its own node, and its schedule."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kit.deployments import by_kind, granted, make_large, read_manifests, write_inventory
from tests.kit.experiment_runs import rights_of
from tests.kit.gamedays import day_state, faults, kill_day_at, run_day, verdicts_of, write_day
from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import WALL, environment, lab, nodefall

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * WALL)]
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"


def deploy(cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    inventory = write_inventory(cwd / "staging.yaml")
    return nodefall("gameday", "deploy", "day.yaml", "-i", inventory, *options, cwd=cwd)


def single(rules: list[dict[str, Any]]) -> set[str]:
    """One text for each verb on each resource."""
    found = set()
    for rule in rules:
        for verb in rule["verbs"]:
            for what in rule.get("resources") or rule["nonResourceURLs"]:
                places = [rule.get(key, []) for key in ("apiGroups", "resourceNames", "namespaces")]
                found.add(json.dumps([verb, what, *places]))
    return found


def test_an_api_server_accepts_what_is_printed(tmp_path: Path) -> None:
    write_day(tmp_path, ["one"], schedule={"cron": "0 10 * * TUE#1"})
    done = deploy(tmp_path, "--s3", "bucket/prefix")
    assert done.returncode == 0, done.stderr
    assert 'kubectl -n nodefall create secret generic nodefall-days --from-literal=BMC_1="$BMC_1"' in done.stderr
    with lab(tmp_path) as inventory:
        kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], tmp_path)
        assert kubectl.run("apply", "-f", "-", stdin=done.stdout).returncode == 0
        again = kubectl("apply", "-f", "-", stdin=done.stdout)
        assert {line.split()[-1] for line in again.splitlines()} == {"unchanged"}
        job = kubectl.json("-n", "nodefall", "get", "cronjob", "nodefall-days")
        assert (job["spec"]["schedule"], job["spec"]["concurrencyPolicy"]) == ("0 10 * * 2", "Forbid")
        kubectl("-n", "nodefall", "create", "job", "--from=cronjob/nodefall-days", "days-1")
        made = kubectl.json("-n", "nodefall", "get", "job", "days-1")
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("CronJob", job["metadata"]["uid"])
        planned = job["spec"]["jobTemplate"]["spec"]
        assert made["spec"]["template"]["spec"] == planned["template"]["spec"]
        assert {key: made["spec"][key] for key in planned if key != "template"} == {
            key: value for key, value in planned.items() if key != "template"
        }


def test_a_large_day_is_applied_on_the_server(tmp_path: Path) -> None:
    """A client-side apply of the same manifests is refused. The pods of the day before it keep their ConfigMap."""
    write_day(tmp_path, ["one"])
    before = by_kind(read_manifests(deploy(tmp_path).stdout), "ConfigMap")
    make_large(tmp_path)
    printed = deploy(tmp_path)
    assert "kubectl apply --server-side -f manifests.yaml" in printed.stderr
    after = by_kind(read_manifests(printed.stdout), "ConfigMap")
    with lab(tmp_path) as inventory:
        kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], tmp_path)
        kubectl("create", "namespace", "nodefall")
        kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(before))
        refused = kubectl.run("apply", "-f", "-", stdin=json.dumps(after))
        assert (refused.returncode, "262144" in refused.stderr) == (1, True), refused
        kubectl("apply", "--server-side", "-f", "-", stdin=printed.stdout)
        for each in (before, after):
            found = kubectl.json("-n", "nodefall", "get", "configmap", each["metadata"]["name"])
            assert found["data"] == each["data"]


def test_exactly_the_rights_of_the_manifests_are_enough(tmp_path: Path) -> None:
    day = write_day(tmp_path, ["one"])
    exact = granted(read_manifests(deploy(tmp_path).stdout))
    assert single(exact) == single(rights_of(day))
    with lab(tmp_path, rights=exact) as inventory:
        done = run_day(inventory, tmp_path, "--scheduled", "--yes", "--id", "nodefall-days-1")
        assert done.returncode == 0, done.stderr
    less = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"]} for rule in exact]
    with lab(tmp_path, rights=[rule for rule in less if rule["verbs"]]) as inventory:
        refused = run_day(inventory, tmp_path, "--scheduled", "--yes")
        assert refused.returncode == 4
        assert "may not patch nodes" in refused.stderr


def test_the_node_of_the_own_pod_is_no_target(tmp_path: Path) -> None:
    """Of three workers any would do; named, it is refused."""
    write_day(tmp_path, ["one"], entries=[{"experiment": "one.yaml", "repeat": 12}])
    with lab(tmp_path) as inventory:
        kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], tmp_path)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nodefall-days-1-abcde", "namespace": "default"}}
        spec = {"nodeName": "worker-2", "containers": [{"name": "nodefall", "image": PAUSE_IMAGE}]}
        kubectl("apply", "-f", "-", stdin=json.dumps(pod | {"spec": spec}))
        uid = kubectl.json("get", "pod", "nodefall-days-1-abcde")["metadata"]["uid"]
        assert set(targets(inventory, tmp_path, uid)) == {"worker-1", "worker-3"}
        assert set(targets(inventory, tmp_path, "of-another-cluster")) == {"worker-1", "worker-2", "worker-3"}
        entries = [{"experiment": "one.yaml", "targets": {"victim": {"nodes": ["worker-2"]}}}]
        write_day(tmp_path, ["one"], entries=entries)
        (refused,) = targets(inventory, tmp_path, uid)
        assert "nodefall runs on worker-2 itself, as the pod default/nodefall-days-1-abcde" in refused


def targets(inventory: Path, cwd: Path, uid: str) -> list[str]:
    """The target of each run that the plan selects in a pod with this UID, or why it is refused."""
    command = [sys.executable, "-m", "chaos", "gameday", "plan", "day.yaml", "-i", str(inventory), "--json"]
    done = subprocess.run(
        [*command, "--seed", "1"],
        cwd=cwd,
        env={**environment(cwd), "NODEFALL_POD_UID": uid},
        capture_output=True,
        text=True,
        timeout=WALL,
        check=False,
    )
    runs = json.loads(done.stdout)["runs"]
    return [run["refused"]["message"] if run["refused"] else run["plan"]["targets"][0]["node"] for run in runs]


def test_a_schedule_begins_a_day_only_when_it_is_due(tmp_path: Path) -> None:
    never = (datetime.now(UTC).month + 5) % 12 + 1  # half a year from now
    write_day(tmp_path, ["one"], schedule={"cron": f"0 10 1 {never} *"})
    with lab(tmp_path) as inventory:
        refused = run_day(inventory, tmp_path, "--scheduled", "--id", "job-1")
        assert refused.returncode == 4, refused.stderr
        assert "game day days did not start: no scheduled start is due; the next one is at" in refused.stderr
        assert faults(tmp_path) == {}
        write_day(tmp_path, ["one"], schedule={"cron": "* * * * *"})
        done = run_day(inventory, tmp_path, "--scheduled", "--id", "job-2")
        assert done.returncode == 0, done.stderr
        assert day_state(inventory, tmp_path)["day"] == "job-2"
        assert run_day(inventory, tmp_path, "--scheduled", "--id", "job-2").returncode == 0  # a second pod of the Job
        assert faults(tmp_path) == {"one": 1}


def test_another_job_goes_on_with_a_day_that_is_not_finished(tmp_path: Path) -> None:
    write_day(tmp_path, ["one", "two"], schedule={"cron": "* * * * *"})
    with lab(tmp_path) as inventory:
        kill_day_at("entry one (1) is held", inventory, tmp_path)
        done = run_day(inventory, tmp_path, "--scheduled", "--id", "job-2", "--json")
        assert done.returncode == 0, done.stderr
        state = json.loads(done.stdout)
        assert verdicts_of(state) == {"one": "held", "two": "held"}
        assert state["day"] != "job-2"
        assert faults(tmp_path) == {"one": 1, "two": 1}

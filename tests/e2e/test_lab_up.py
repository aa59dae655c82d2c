"""``nodefall lab up``, ``status`` and ``down``: what they give, say and refuse."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.processes import EXPERIMENTS, LAB, ROOT, environment, nodefall, start
from tests.kit.staying_processes import Labs, get, labs_below, until

pytestmark = pytest.mark.lab
JOB = """---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: shop}
spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: app}]}}}
"""
TIERS = EXPERIMENTS / "workloads" / "web-db-tiers.yaml"
FAST = LAB.read_text(encoding="utf-8").replace("workers: 3", "workers: 3\n  speed: 1000")
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Labs]:
    with labs_below(tmp_path) as found:
        yield found


def test_two_labs_at_once_and_what_is_refused_meanwhile(labs: Labs) -> None:
    first = labs.up()
    assert sorted(node["metadata"]["name"] for node in get(first, "/api/v1/nodes")["items"]) == [
        "control-plane", "worker-1", "worker-2", "worker-3",
    ]  # fmt: skip
    again = labs.run("up")
    assert again.returncode == 4
    assert "the lab 'lab' already exists" in again.stderr
    assert "stop it with nodefall lab down lab" in again.stderr
    port = first["apiServer"].rpartition(":")[2]
    taken = labs.run("up", "--name", "two", "--port", port)
    assert taken.returncode == 4
    assert f"port {port} is in use by the lab 'lab'" in taken.stderr

    wanted = ["--nodes", "2", "--zones", "a,b", "--seed", "7", "--systemd", "257", "--breakage", "eviction-late"]
    second = labs.up("--name", "two", *wanted)
    zones = [n["metadata"]["labels"].get("topology.kubernetes.io/zone") for n in get(second, "/api/v1/nodes")["items"]]
    assert zones == [None, "a", "b"]
    assert (second["workers"], second["seed"], second["lockstep"]) == (2, 7, True)
    contexts = [json.loads(Path(lab["kubeconfig"]).read_text())["current-context"] for lab in (first, second)]
    assert contexts == ["nodefall-lab", "nodefall-two"]

    status = labs.run("status")
    assert status.returncode == 0
    assert (
        "two: running, 2 workers, Kubernetes v1.36.2, up to 20x, only while a client waits, "
        "deliberately broken: eviction-late" in status.stdout
    )
    assert labs.status() == first
    assert len(labs.processes()) == 2

    assert labs.run("down").stderr == "the lab 'lab' is down\n"
    assert get(second, "/version")["gitVersion"] == "v1.36.2"
    missing = labs.run("down")
    assert (missing.returncode, missing.stderr) == (64, "error: unknown lab 'lab'\nhint: known labs: two\n")
    assert json.loads(labs.run("down", "--all", "--json").stdout) == {"down": ["two"]}
    assert labs.left() == []
    assert labs.run("down").returncode == 0
    assert labs.run("status").stdout == "no labs; start one with nodefall lab up\n"


@pytest.mark.smoke
def test_secrets_are_in_its_private_directory_only(labs: Labs) -> None:
    done = labs.run("up", "--out", "out.json")
    assert done.returncode == 0
    directory = labs.directory / "lab"
    assert (labs.directory.stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (0o700, 0o700)
    token = json.loads((directory / "kubeconfig.yaml").read_text())["users"][0]["user"]["token"]
    password = (directory / "bmc-password").read_text()
    status = labs.run("status", "--json").stdout + labs.run("status").stdout
    output = (
        done.stdout + done.stderr + status + (labs.cwd / "out.json").read_text() + (directory / "lab.json").read_text()
    )
    assert token not in output
    assert password not in output
    assert "PRIVATE KEY" not in output
    assert (labs.cwd / "out.json").read_text() == (directory / "inventory.json").read_text()
    for path in (directory / "kubeconfig.yaml", directory / "inventory.json"):
        assert str(path) in done.stdout
    plan = nodefall("plan", EXPERIMENTS / "graceful-poweroff.yaml", "-i", "out.json", cwd=labs.cwd)
    assert plan.returncode == 0, plan.stderr
    assert labs.run("down").returncode == 0
    assert not (labs.cwd / "out.json").exists()


def test_a_copy_of_the_inventory_that_was_changed_is_not_removed(labs: Labs) -> None:
    labs.up("--out", "mine.json")
    (labs.cwd / "mine.json").write_text("mine")
    assert labs.run("down").returncode == 0
    assert (labs.cwd / "mine.json").read_text() == "mine"


def test_free_running_with_a_workload_that_has_its_own_namespace(labs: Labs) -> None:
    own = labs.cwd / "own.yaml"
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
    own.write_text(namespace + POD.replace("{name: p}", "{name: p, namespace: shop}") + JOB)
    lab = labs.up("--speed", "20", "--workload", TIERS, "--workload", own)
    web = get(lab, "/apis/apps/v1/namespaces/default/deployments/web")
    assert web["status"]["availableReplicas"] == web["spec"]["replicas"] == 6
    assert get(lab, "/api/v1/namespaces/shop/pods/p")["status"]["phase"] == "Running"
    assert get(lab, "/apis/batch/v1/namespaces/shop/jobs/j")["status"]["ready"] == 2
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-1"
    before = get(lab, lease)["spec"]["renewTime"]
    until(lambda: get(lab, lease)["spec"]["renewTime"] > before)  # no client sleeps on its time source
    assert labs.run("down").returncode == 0
    assert labs.left() == []


BAD = [
    ("{", 64, "bad.yaml:2:1: "),
    ("kind: Pod\n", 64, "bad.yaml:1:1: a Kubernetes object needs apiVersion"),
    (POD + "---\n" + POD, 64, 'bad.yaml:6:1: the lab rejected Pod p: 409 pods "p" already exists'),
    (POD + "---\napiVersion: v1\nkind: Frob\nmetadata: {name: f}\n", 64, "bad.yaml:6:1: the lab rejected Frob f: 404"),
    (
        POD.replace("{name: p}", "{name: p, namespace: x}"),
        64,
        'bad.yaml:1:1: the lab rejected Pod p: 404 namespaces "x"',
    ),
    (
        POD.replace("spec: {", "spec: {nodeSelector: {no: where}, "),
        2,
        "bad.yaml:1:1: pod p: not Ready (pod p: 0/4",
    ),
]


@pytest.mark.parametrize(("text", "code", "message"), BAD, ids=[message for _, _, message in BAD])
def test_with_a_bad_workload_the_lab_is_removed(labs: Labs, text: str, code: int, message: str) -> None:
    (labs.cwd / "bad.yaml").write_text(text)
    (labs.cwd / "fast.yaml").write_text(FAST)
    done = labs.run("up", "fast.yaml", "--workload", "bad.yaml")
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stdout == ""
    assert labs.left() == []


def test_a_port_that_is_in_use(labs: Labs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = labs.run("up", "--port", port)
    assert done.returncode == 4
    assert f"the lab cannot listen: port {port} of 127.0.0.1: Address already in use" in done.stderr
    assert "--port" in done.stderr
    assert labs.left() == []


def test_of_two_concurrent_commands_one_wins(labs: Labs) -> None:
    both = [start("lab", "up", "--json", cwd=labs.cwd) for _ in range(2)]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 4], outputs
    assert len(labs.processes()) == 1
    assert labs.status()["state"] == "running"


USAGE = [
    (["--name", "Not/One"], "invalid name of a lab: 'Not/One'"),
    (["--nodes", "0"], "--nodes"),
    (["--zones", "a,,b"], "--zones: 'a,,b' is not a list of different names"),
    (["--kubernetes", "v1.30.1"], "--kubernetes: 'v1.30.1' is not simulated"),
    (["--systemd", "250"], "systemd 250 is not simulated, only 251 and later"),
    (["--speed", "0"], "--speed"),
    (["--breakage", "eviction-lat"], "eviction-late"),
    (["--kubelet-defects", "inhibitor-lost=always"], "did you mean 'inhibitor-lost-after-cancel'?"),
    (["--kubelet-defects", "inhibitor-lost-after-cancel=often"], "--kubelet-defects: Input should be 'always'"),
    (["--port", "70000"], "--port"),
    (["--workload", "missing.yaml"], "missing.yaml: file not found"),
    ([str(ROOT / "hosts" / "example.yaml")], "describes a cluster, not a lab"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[message for _, message in USAGE])
def test_usage(labs: Labs, arguments: list[str], message: str) -> None:
    done = labs.run("up", *arguments, "--json")
    assert done.returncode == 64, done.stderr
    assert message in json.loads(done.stdout)["error"]["message"] + json.loads(done.stdout)["error"]["hint"]
    assert labs.left() == []


def test_the_shell_completes_names(labs: Labs) -> None:
    for name in ("red", "blue"):
        (labs.directory / name).mkdir(parents=True)
    completion = {"_NODEFALL_COMPLETE": "bash_complete", "COMP_WORDS": "nodefall lab down ", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "chaos"],
        env=environment(labs.cwd) | completion,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "plain,blue\nplain,red\n"

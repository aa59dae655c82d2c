"""``nodefall rehearse`` as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from chaos.cli.app import cli, main
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.verdicts.outcome.prediction import parse_prediction
from tests.kit.lab_copies import Object, save
from tests.kit.processes import EXPERIMENTS, ROOT, WALL, environment

EXPERIMENT = """
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: node-lost}
spec:
  title: A node loses power
  targets:
    victim: {role: worker, count: 1}
  steadyState:
    - {assert: nodes-ready, with: {nodes: all}}
  method:
    - {name: cut, action: power-cut, target: victim}
    - {name: on, action: power-on, target: victim, after: cut + 90s}
  hypothesis:
    - name: the node becomes Unknown
      assert: node-condition
      with: {node: victim, type: Ready, status: Unknown}
      after: cut
      within: 55s
  maxDuration: 10m
"""


def workload(name: str, **spec: Any) -> Object:
    pod = {"containers": [{"name": "c", "image": "app:1"}], **spec}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    body = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": body}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment, and the snapshot of two workers in two zones, of which one has the only pod of a Deployment."""
    path = tmp_path_factory.mktemp("rehearse")
    nodes = [NodeSpec(name="cp", role="control-plane"), *(NodeSpec(name=f"w-{zone}", zone=zone) for zone in "ab")]
    cluster = Cluster(LabSpec(nodes=nodes, seed=5))
    cluster.start()
    cluster.create_object("deployments", workload("web", nodeSelector={"kubernetes.io/hostname": "w-b"}))
    cluster.sim.run_until(cluster.sim.now + 30)
    save(cluster, path / "s.gz")
    (path / "lost.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def rehearse(*arguments: str) -> int:
    return main(["rehearse", "lost.yaml", "--quiet", *arguments])


def test_the_same_snapshot_and_seeds_give_the_same_bytes(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--snapshot", "s.gz", "--seeds", "3", "--json", "--out", str(tmp_path))
    printed = []
    for jobs in ("1", "3"):
        assert rehearse(*options, "--jobs", jobs) == 0
        printed.append(capfd.readouterr().out)
    assert printed[0] == printed[1] == (tmp_path / "rehearsal.json").read_text(encoding="utf-8")
    document = json.loads(printed[0])
    assert document["runs"]["endings"] == {"held": 3}
    (expectation,) = [each for each in document["runs"]["expectations"] if each["section"] == "hypothesis"]
    assert 30 < expectation["low"] < expectation["high"] < 55
    prediction = parse_prediction((tmp_path / "prediction.json").read_bytes(), "prediction.json")
    assert (prediction.seeds, prediction.snapshot_hash) == ((1, 2, 3), document["snapshotHash"])


@pytest.mark.slow
def test_every_node_and_every_zone(capfd: pytest.CaptureFixture[str]) -> None:
    for option, victims in (("--each-node", ["w-b", "w-a"]), ("--each-zone", ["b", "a"])):
        assert rehearse("--snapshot", "s.gz", option, "--json") == 0
        document = json.loads(capfd.readouterr().out)
        assert [rank["victim"] for rank in document["runs"]["victims"]] == victims
        assert "hurts most: 1 workload without a serving pod for" in document["headline"]
        assert document["runs"]["victims"][1]["score"] == 0


def test_with_and_without_a_change(capfd: pytest.CaptureFixture[str]) -> None:
    assert rehearse("--snapshot", "s.gz", "--each-node", "--what-if", "nodeMonitorGracePeriod=120s", "--json") == 1
    document = json.loads(capfd.readouterr().out)
    assert document["without"]["endings"] == {"held": 2}
    assert document["runs"]["endings"] == {"violated": 2}
    assert document["runs"]["changes"] == ["kube-controller-manager has nodeMonitorGracePeriod 120s"]


def test_the_lab_of_the_experiment_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", str(EXPERIMENTS / "graceful-poweroff.yaml"), "--seeds", "1"]) == 0
    printed = capfd.readouterr()
    assert "no --snapshot: rehearsing on the simulated cluster that the experiment names, hosts/lab.yaml" in printed.err
    assert "1 held" in printed.out


def test_limits_of_an_inventory_apply(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    inventory = tmp_path / "lab.yaml"
    inventory.write_text(
        "apiVersion: nodefall.dev/v1alpha1\nkind: Inventory\nmetadata: {name: x}\nlab: {}\nprotected: {nodes: [w-b]}\n"
    )
    assert rehearse("--snapshot", "s.gz", "--each-node", "-i", str(inventory), "--json") == 2
    ranks = json.loads(capfd.readouterr().out)["runs"]["victims"]
    assert "which the inventory protects" in next(rank["refused"] for rank in ranks if rank["victim"] == "w-b")


def test_without_a_steady_state_no_node_is_called_harmless(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steady = "{assert: nodes-ready, with: {nodes: all}}"
    unsteady = "{assert: node-condition, with: {node: victim, type: Ready, status: Unknown}}"
    assert steady in EXPERIMENT
    (folder / "unsteady.yaml").write_text(EXPERIMENT.replace(steady, unsteady), encoding="utf-8")
    options = ["rehearse", "unsteady.yaml", "--quiet", "--snapshot", "s.gz", "--json"]
    assert main([*options, "--each-node"]) == 4
    found = json.loads(capfd.readouterr().out)
    assert found["headline"].startswith("no node can be the victim: no steady state: node-condition: w-")
    assert main([*options, "--seeds", "2"]) == 4
    found = json.loads(capfd.readouterr().out)
    assert found["headline"].startswith("refused in 2 of 2 runs: no steady state: node-condition: w-")
    assert sum(found["runs"]["refused"].values()) == found["runs"]["endings"]["refused"] == 2


def edited(folder: Path, name: str, edit: Callable[[list[Any]], None]) -> str:
    """The snapshot with its lines changed."""
    with gzip.open(folder / "s.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    edit(lines)
    with gzip.open(folder / name, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return name


def _of(lines: list[Any], kind: str) -> list[Any]:
    return [line["object"] for line in lines if line["kind"] == kind]


def _set_pod_spec(lines: list[Any]) -> None:
    for pod in _of(lines, "pods"):
        pod["spec"]["containers"] = [{"name": 7, "resources": "none"}]
        pod["spec"]["tolerations"] = "all"


@pytest.mark.parametrize(
    ("edit", "code", "why"),
    [
        (lambda lines: lines.clear(), 64, "the snapshot has no nodes"),
        (lambda lines: lines.__delitem__(slice(1, None)), 64, "the snapshot has no nodes"),
        (lambda lines: lines[0]["object"].update(format=2), 64, "format 2 of a snapshot is not known"),
        (lambda lines: lines[0]["object"].update(format=0), 64, "format 0 of a snapshot is not known"),
        (lambda lines: _of(lines, "pods")[0].update(metadata=[]), 64, "one of the pods has no metadata.name"),
        (lambda lines: _of(lines, "pods")[0].update(spec=3), 64, "spec of pods web-"),
        (_set_pod_spec, 64, "pods default/web-"),
    ],
)
def test_snapshots_that_have_no_copy(
    folder: Path, capfd: pytest.CaptureFixture[str], edit: Callable[[list[Any]], None], code: int, why: str
) -> None:
    assert rehearse("--snapshot", edited(folder, "bad.gz", edit), "--each-node") == code
    assert why in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (("--each-node", "--each-zone"), 64, "cannot be combined"),
        (("--what-if", "grace=a/b:1"), 64, "--what-if needs --snapshot"),
        (("--snapshot", "s.gz", "--what-if", "without=w-c"), 64, "the snapshot has no node 'w-c'"),
        (("--snapshot", "s.gz", "--what-if", "wit=w-c"), 64, "unknown change 'wit=w-c'"),
        (("--snapshot", "none.gz"), 64, "none.gz: "),
    ],
)
def test_errors(capfd: pytest.CaptureFixture[str], options: tuple[str, ...], code: int, why: str) -> None:
    assert rehearse(*options) == code
    assert why in capfd.readouterr().err


def test_keys_of_what_if(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "--help-what-if"]) == 0
    assert "grace=NAMESPACE/NAME:SECONDS" in capfd.readouterr().out

    def offered(*before: str, incomplete: str) -> list[str]:
        found = ShellComplete(cli, {}, "nodefall", "_X").get_completions(["rehearse", *before], incomplete)
        return [item.value for item in found]

    assert "without=" in offered("lost.yaml", "--what-if", incomplete="wi")
    snapshot = ("lost.yaml", "--snapshot", "s.gz", "--what-if")
    assert offered(*snapshot, incomplete="without=w-") == ["without=w-a", "without=w-b"]
    assert offered(*snapshot, incomplete="grace=") == ["grace=default/web:"]


def test_ctrl_c_ends_all_processes(folder: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    options = ["lost.yaml", "--snapshot", "s.gz", "--seeds", "60", "--jobs", "2"]
    env = environment(folder) | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "chaos", "rehearse", *options]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=env,
    )
    assert process.stderr is not None
    assert "of 60 runs" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(WALL) == 130
    assert "interrupted" in process.stderr.read()
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)

"""``nodefall rehearse`` with several experiments: each on its own lab, and which ended otherwise than expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.cli.app import main
from tests.kit.processes import EXPERIMENTS, ROOT

STATES = """
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: NAME, annotations: {nodefall.dev/verdict: EXPECTED, nodefall.dev/lab: lab-zones.yaml}}
spec:
  title: A node is cordoned
  targets: {victim: {role: worker, count: 1}}
  steadyState:
    - {assert: nodes-ready, with: {nodes: all}}
  method:
    - {name: cordon, action: cordon, target: victim}
  hypothesis:
    - name: the node is READY
      assert: node-condition
      with: {node: victim, type: Ready, status: "READY"}
      after: cordon
      within: 5s
  maxDuration: 5m
"""


def experiment(name: str, expected: str, ready: str) -> str:
    return STATES.replace("NAME", name).replace("EXPECTED", expected).replace("READY", ready)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(experiment("stays-ready", "held", "True"), encoding="utf-8")
    (tmp_path / "b.yaml").write_text(experiment("goes", "violated", "False"), encoding="utf-8")
    (tmp_path / "lab.yaml").write_text(
        "apiVersion: nodefall.dev/v1alpha1\nkind: Inventory\nmetadata: {name: mine}\nlab: {workers: 2}\n"
    )
    return tmp_path


def test_a_directory_ends_as_its_annotations_say(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", str(folder), "--seeds", "2", "--jobs", "2"]) == 0
    printed = capfd.readouterr()
    assert "4 of 4 runs: 2 held, 2 violated" in printed.err
    assert printed.out.splitlines()[:5] == [
        "all 2 experiments ended as expected",
        "",
        "EXPERIMENT   LAB             EXPECTED  2 SEEDS",
        "stays-ready  lab-zones.yaml  held      2 held",
        "goes         lab-zones.yaml  violated  2 violated",
    ]


def test_what_the_lab_of_an_experiment_does_not_protect_may_be_its_victim(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", str(EXPERIMENTS / "etcd-leader-lost.yaml"), "--seeds", "1", "--quiet"]) == 0
    assert capfd.readouterr().out.startswith("every expectation held, ")


def test_one_that_ends_otherwise(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the run with its seed and headline; the same bytes whatever the number of processes."""
    (folder / "c.yaml").write_text(experiment("wrong", "held", "False"), encoding="utf-8")
    files = [str(folder / name) for name in ("c.yaml", "a.yaml")]
    documents = []
    for jobs in ("1", "2"):
        assert main(["rehearse", *files, "--quiet", "--json", "--seed", "7", "--jobs", jobs]) == 1
        documents.append(capfd.readouterr().out)
    assert documents[0] == documents[1]
    document = json.loads(documents[0])
    assert document["headline"] == "1 of 2 experiments ended otherwise than expected: wrong"
    assert (document["exitCode"], document["seeds"], document["simulated"]) == (1, [7], True)
    wrong, right = document["experiments"]
    assert (wrong["file"], wrong["endings"]) == (files[0], {"violated": 1})
    assert [(run["seed"], run["ending"]) for run in wrong["unexpected"]] == [(7, "violated")]
    assert wrong["unexpected"][0]["why"].startswith("1 of ")
    assert (right["expected"], right["unexpected"]) == ("held", [])
    assert main(["rehearse", *files, "--quiet"]) == 1
    assert "\nwrong, seed 1: 1 of " in capfd.readouterr().out


def test_a_refused_one_is_inconclusive(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    probe = "  probes: [{name: shop, http: https://shop.example}]\n  maxDuration"
    text = experiment("probes", "held", "True").replace("  maxDuration", probe)
    (folder / "a.yaml").write_text(text, encoding="utf-8")
    assert main(["rehearse", str(folder), "--quiet"]) == 2
    assert (
        "probes, seed 1: probe shop: the only network in a rehearsal is the network of its Services"
        in capfd.readouterr().out
    )


def test_the_lab_of_an_inventory(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", str(folder), "-i", str(folder / "lab.yaml"), "--quiet", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert {row["lab"] for row in document["experiments"]} == {"mine"}


def test_the_shipped_ones_are_found(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Each on the lab that it names; that all end as expected is tested in ``tests/experiments``."""
    monkeypatch.chdir(ROOT)
    names = [f"experiments/{name}.yaml" for name in ("cordon", "windows-short-timeout", "cancelled-in-flight")]
    assert main(["rehearse", *names, "--quiet", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)["experiments"]
    assert [(row["lab"], row["endings"]) for row in rows] == [
        ("lab.yaml", {"held": 1}),
        ("lab-windows-short.yaml", {"held": 1}),
        ("lab-systemd-257.yaml", {"held": 1}),
    ]


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--snapshot", "s.gz"], "--snapshot cannot be combined with several experiments"),
        (["--each-node"], "--each-node cannot be combined"),
        (["--each-zone"], "--each-zone cannot be combined"),
        (["--what-if", "grace=a/b:1"], "--what-if cannot be combined"),
        (["--out", "x"], "--out cannot be combined"),
    ],
)
def test_options_of_one_experiment(option: list[str], why: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", str(EXPERIMENTS), *option]) == 64
    assert why in capfd.readouterr().err


def test_all_problems_of_all_files(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a.yaml", "b.yaml"):
        (folder / name).write_text(experiment("x", "held", "True").replace("cordon,", "cordn,"), encoding="utf-8")
    assert main(["rehearse", str(folder)]) == 64
    printed = capfd.readouterr().err
    assert "a.yaml:" in printed
    assert "b.yaml:" in printed
    (folder / "none").mkdir()
    assert main(["rehearse", str(folder / "none")]) == 64
    assert "no experiment in this directory" in capfd.readouterr().err

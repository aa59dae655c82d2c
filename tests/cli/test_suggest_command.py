"""``nodefall suggest`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.cli.app import main
from chaos.engine.load import load
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.lab_copies import save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots of two workers, of which one has the only pod of a Deployment."""
    path = tmp_path_factory.mktemp("suggest")
    nodes = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1"), NodeSpec(name="w2")]
    cluster = Cluster(LabSpec(nodes=nodes, seed=5))
    cluster.start()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    cluster.create_object("deployments", {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    cluster.sim.run_until(cluster.sim.now + 30)
    save(cluster, path / "s.gz")
    save(cluster, path / "hidden.gz", anonymize=True)
    return path


@pytest.mark.slow
def test_reports_and_experiments_are_written_and_the_same_each_time(
    folder: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    documents = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        arguments = ["--snapshot", str(folder / "s.gz"), "--seeds", "2", "--out", str(out), "--jobs", jobs, "--quiet"]
        assert main(["suggest", *arguments]) == 0
        documents.append((out / "suggest.json").read_text(encoding="utf-8"))
    printed = capfd.readouterr().out
    assert documents[0] == documents[1]
    document = json.loads(documents[0])
    assert (document["version"], document["simulated"]) == (1, True)
    (risk,) = document["risks"]
    assert risk["workload"] == "Deployment default/web"
    assert risk["worst"]["event"] == "power-cut"
    assert 300 < risk["worst"]["low"] <= risk["worst"]["high"] < 400
    assert risk["with_change"]["mean"] == 0
    files = [each["file"] for each in document["experiments"]]
    commands = [line for line in printed.splitlines() if line.startswith(f"nodefall run {out}/")]
    assert [line.split()[2] for line in commands] == [str(out / file) for file in files]
    assert main(["validate", *(str(out / file) for file in files)]) == 0
    assert load(out / files[0]).experiment.metadata.name == "default-web-drain"


@pytest.mark.slow
def test_experiments_of_an_anonymized_snapshot_are_not_offered(
    folder: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--snapshot", str(folder / "hidden.gz"), "--seeds", "1", "--out", str(tmp_path), "--quiet"]
    assert main(["suggest", *given]) == 0
    printed = capfd.readouterr().out
    assert "the snapshot is anonymized" in printed
    assert "nodefall run " not in printed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--snapshot", "none.gz"], "none.gz"),
        (["--snapshot", "none.gz", "-i", "lab.yaml"], "--inventory cannot be combined with --snapshot"),
        (["--top", "0"], "--top"),
    ],
)
def test_bad_input(arguments: list[str], error: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", *arguments]) == 64
    assert error in capfd.readouterr().err

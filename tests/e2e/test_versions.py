"""One experiment on labs of two versions: its verdicts differ as it should, and its range refuses the older one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.kit.experiment_runs import verdict_of
from tests.kit.processes import nodefall, result_of, write_experiment
from tests.kit.suite import others_nightly

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
READY = {"assert": "nodes-ready", "with": {"nodes": "all"}}
SEES_SWAP = "nodes.exists(n, n.name in targets && n.swap > 0)"  # status.nodeInfo.swap, since v1.33
SPEC: dict[str, Any] = {
    "title": "a node reports its swap",
    "targets": {"victim": {"role": "worker"}},
    "steadyState": [READY],
    "method": [{"name": "cordon", "action": "cordon", "target": "victim"}],
    "hypothesis": [
        {"assert": "expression", "with": {"node": "victim", "expression": SEES_SWAP}, "always": {"for": "5s"}}
    ],
}


def _inventory(directory: Path, version: str) -> Path:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "i"}}
    path = directory / f"{version}.yaml"
    path.write_text(json.dumps(head | {"lab": {"kubernetes": version, "swap": "2Gi", "failSwapOn": False}}))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("version", "verdict"), [("v1.31", "violated"), pytest.param("v1.36", "held", marks=pytest.mark.nightly)]
)
def test_the_verdict_is_that_of_the_version(tmp_path: Path, version: str, verdict: str) -> None:
    path = write_experiment(tmp_path / "swap.yaml", SPEC)
    done = nodefall("run", path, "-i", _inventory(tmp_path, version), "--json", cwd=tmp_path)
    result = result_of(done)
    assert (verdict_of(result), result["kubernetes"]) == (verdict, f"{version}.0"), done.stderr


@pytest.mark.nightly
def test_a_version_outside_the_range_is_refused_before_a_node_is_touched(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "swap.yaml", SPEC | {"kubernetes": ">=v1.33"})
    old, new = _inventory(tmp_path, "v1.31"), _inventory(tmp_path, "v1.33")
    refused = nodefall("run", path, "-i", old, cwd=tmp_path)
    assert refused.returncode == 4
    assert "swap is for Kubernetes >=v1.33; the API server is v1.31.0" in refused.stderr
    assert "choose another cluster or experiment" in refused.stderr
    assert list(tmp_path.glob("reports/*/*/recording*")) == []
    assert nodefall("validate", path, cwd=tmp_path).returncode == 0
    report = json.loads(nodefall("doctor", path, "-i", old, "--json", cwd=tmp_path).stdout)
    assert report["impossible"] == ["swap"]
    assert nodefall("plan", path, "-i", new, cwd=tmp_path).returncode == 0


def test_an_invalid_range_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = write_experiment(tmp_path / "swap.yaml", SPEC | {"kubernetes": "1.33+"})
    done = nodefall("validate", path, cwd=tmp_path)
    assert done.returncode == 64
    assert re.search(r"swap.yaml:1:\d+: '1.33\+' is not a range of versions; write it like '>=v1.32'", done.stderr)


@pytest.mark.parametrize("version", others_nightly(["v1.30", "1.36", "v1.37.0", "newest"], ("v1.30", "newest")))
def test_a_lab_of_another_version_is_refused(tmp_path: Path, version: str) -> None:
    done = nodefall("lab", "up", "--kubernetes", version, cwd=tmp_path)
    assert done.returncode == 64
    assert f"--kubernetes: {version!r} is not simulated; give v1.31 to v1.36" in done.stderr

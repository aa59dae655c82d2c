"""Workloads that a lab cannot run are refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.command import command
from tests.kit.processes import ROOT

EXPERIMENT = """
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: shop}
spec:
  title: A node is lost
  workload: {manifests: [shop.yaml]}
  targets: {victim: {role: worker, count: 1}}
  steadyState: [{assert: nodes-ready, with: {nodes: all}}]
  method:
    - {name: cut, action: power-cut, target: victim}
    - {name: on, action: power-on, target: victim, after: cut + 60s}
  hypothesis:
    - {assert: node-condition, with: {node: victim, type: Ready, status: Unknown}, after: cut, within: 55s}
"""
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  containers: [{name: c, image: db}]
  initContainers: [{name: i, image: init}]
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(PODS)
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    return tmp_path / "e.yaml"


def test_validate_checks_workloads_where_an_inventory_has_a_lab(experiment: Path) -> None:
    lab = ROOT / "hosts" / "lab.yaml"
    assert command("validate", experiment).returncode == 0, "a real cluster may run it"
    found = command("validate", experiment, lab)
    assert found.returncode == 64
    assert (
        f"{experiment.parent / 'shop.yaml'}:7:1: a lab rejects Pod: the lab does not simulate initContainers"
        in found.stderr
    )
    assert command("validate", ROOT / "experiments" / "power-cut.yaml", lab).returncode == 0


def test_a_rehearsal_is_refused_before_the_fault(experiment: Path, tmp_path: Path) -> None:
    found = command("rehearse", experiment, "-i", ROOT / "hosts" / "lab.yaml", cwd=tmp_path)
    assert found.returncode == 4, found.stdout + found.stderr
    assert "the lab rejects Pod db of the workload: the lab does not simulate initContainers" in found.stdout

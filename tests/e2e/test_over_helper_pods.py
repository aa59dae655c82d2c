"""Runs over transport pod on a lab, with the API client, the WebSockets and the kubelets of any cluster."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import EXPERIMENTS, lab, nodefall, result_of, start, wait_for

pytestmark = pytest.mark.lab
_PODS = ("get", "pods", "-A", "-l", "nodefall.dev/transport=pod", "-o", "name")


def over_pods(inventory: Path) -> tuple[Path, Kubectl]:
    """The inventory of a lab with transport pod instead of SSH."""
    document = json.loads(inventory.read_text(encoding="utf-8"))
    document["defaults"] = {"transport": "pod"}
    changed = inventory.with_name("pods.json")
    changed.write_text(json.dumps(document), encoding="utf-8")
    changed.chmod(0o600)
    return changed, Kubectl(document["cluster"]["kubeconfig"], inventory.parent)


def test_doctor_leaves_nothing_and_says_what_cannot_be_done(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        inventory, kubectl = over_pods(made)
        experiments = [EXPERIMENTS / "lease-stops.yaml", EXPERIMENTS / "drain-allowed.yaml"]
        found = nodefall("doctor", *experiments, "--inventory", inventory, "--json", cwd=tmp_path)
        report = json.loads(found.stdout)
        assert list(report["possible"]) == ["drain-allowed"]
        assert report["impossible"] == ["lease-stops"]
        messages = [finding["message"] for finding in report["findings"]]
        assert any("after kubelet-stop the kubelet of worker-1" in message for message in messages)
        assert "transport pod: pods in kube-system that nodefall makes are root on their nodes" in messages
        assert kubectl(*_PODS) == ""


@pytest.mark.smoke  # over transport pod
def test_a_run_that_dies_leaves_its_pods_to_the_undo(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        inventory, kubectl = over_pods(made)
        run = start("run", EXPERIMENTS / "partition-waited-out.yaml", "-i", inventory, "--yes", cwd=tmp_path)
        wait_for(run, "phase: observe")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        assert len(kubectl(*_PODS).splitlines()) == 1
        undone = nodefall("undo", "last", cwd=tmp_path)
        assert undone.returncode == 0, undone.stderr
        assert "helper-pods" in undone.stdout + undone.stderr
        assert kubectl(*_PODS) == ""


def test_a_partition_leaves_exec_alone(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        inventory, kubectl = over_pods(made)
        arguments = ("--inventory", inventory, "--yes", "--json")
        result = result_of(nodefall("run", EXPERIMENTS / "partition-ridden-out.yaml", *arguments, cwd=tmp_path))
        assert result["status"] == "held", result
        assert kubectl(*_PODS) == ""

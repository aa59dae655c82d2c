"""kubectl for nodes and their pods: cordon, drain, taint, delete. Real binary, lab at ten times the speed.

A run is aborted by kubectl: an annotation of the cluster lock's Lease.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from typing import Any

import pytest

from chaos.cluster.client import connect
from chaos.cluster.lease_lock import ClusterLock, Identity
from tests.kit.kubectl_lab import Kubectl

pytestmark = pytest.mark.lab


def pods_on(kubectl: Kubectl, node: str) -> set[str]:
    found = kubectl.json("get", "pods", "-A", f"--field-selector=spec.nodeName={node}")["items"]
    return {pod["metadata"]["name"] for pod in found}


def test_cordon_and_uncordon(kubectl: Kubectl) -> None:
    assert kubectl("cordon", "w2") == "node/w2 cordoned\n"
    assert kubectl("cordon", "w2") == "node/w2 already cordoned\n"
    assert kubectl.json("get", "node", "w2")["spec"]["unschedulable"]
    assert kubectl("uncordon", "w2") == "node/w2 uncordoned\n"
    assert "unschedulable" not in kubectl.json("get", "node", "w2")["spec"]


def test_taint_and_untaint(kubectl: Kubectl) -> None:
    def taints() -> list[tuple[str, str]]:
        found = kubectl.json("get", "node", "w2")["spec"].get("taints", [])
        return [(taint["key"], taint["effect"]) for taint in found]

    assert kubectl("taint", "node", "w2", "k=v:NoSchedule") == "node/w2 tainted\n"
    assert "already has k taint(s)" in kubectl.run("taint", "node", "w2", "k=v:NoSchedule").stderr
    assert taints() == [("k", "NoSchedule")]
    assert kubectl("taint", "node", "w2", "k-") == "node/w2 untainted\n"
    assert taints() == []


def test_drain(kubectl: Kubectl) -> None:
    """A drain fails for a bare pod, is blocked by a budget, and ends when the budget permits it."""
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    volumes = [{"name": "v", "emptyDir": {}}]
    overrides = json.dumps({"spec": {"nodeName": "w1", "terminationGracePeriodSeconds": 1, "volumes": volumes}})
    kubectl("run", "bare", "--image=busybox", "--overrides", overrides)
    kubectl("wait", "pod/bare", "--for=condition=Ready", "--timeout=30s")
    words = kubectl.run("drain", "w1", "--timeout=5s").stderr
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)" in words
    assert "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/bare" in words
    words = kubectl.run("drain", "w1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5s").stderr
    assert "cannot delete Pods that declare no controller (use --force to override): default/bare" in words
    kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":3}}')
    forced = ("drain", "w1", "--ignore-daemonsets", "--force", "--delete-emptydir-data")
    ran = kubectl.run(*forced, "--timeout=7s")
    assert ran.returncode == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in ran.stderr
    assert "global timeout reached: 7s" in ran.stderr
    assert "bare" not in pods_on(kubectl, "w1")
    kubectl("patch", "pdb", "web", "-p", '{"spec":{"minAvailable":0}}')
    ran = kubectl.run(*forced, "--timeout=60s")
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "node/w1 drained")
    assert {name.partition("-")[0] for name in pods_on(kubectl, "w1")} == {"agent"}
    kubectl("uncordon", "w1")


def test_delete_waits_and_force_does_not(kubectl: Kubectl) -> None:
    overrides = json.dumps({"spec": {"nodeName": "w2", "terminationGracePeriodSeconds": 20}})
    for name in ("slow", "forced"):
        kubectl(
            "run", name, "--image=busybox", "--overrides", overrides, "--annotations=lab.nodefall.dev/stops-after=9"
        )
    kubectl("wait", "pod/slow", "pod/forced", "--for=condition=Ready", "--timeout=30s")
    assert "deleted" in kubectl("delete", "pod", "slow", "--wait=false")
    assert kubectl.json("get", "pod", "slow")["metadata"]["deletionGracePeriodSeconds"] == 20
    kubectl("wait", "pod/slow", "--for=delete", "--timeout=30s")
    ran = kubectl.run("delete", "pod", "forced", "--force", "--grace-period=0")
    assert 'pod "forced" force deleted' in ran.stdout
    assert "Immediate deletion does not wait for confirmation" in ran.stderr
    assert 'pods "forced" not found' in kubectl.run("get", "pod", "forced").stderr


def test_the_holder_gets_the_reason(free_lab: Any, kubectl: Kubectl) -> None:
    reasons: list[str] = []
    is_requested = threading.Event()

    def on_abort(reason: str) -> None:
        reasons.append(reason)
        is_requested.set()

    with closing(connect(free_lab.facts["kubeconfig"])) as kube:
        lock = ClusterLock(kube, "kube-system", Identity("ann@a/1", {}), time.time, on_abort)
        lock.acquire(lambda _: None)
        try:
            output = kubectl("annotate", "lease", "nodefall", "-n", "kube-system", "nodefall.dev/abort=pager went off")
            assert output == "lease.coordination.k8s.io/nodefall annotated\n"
            assert is_requested.wait(60)
            assert reasons[0] == "pager went off"
        finally:
            lock.release()
    assert "not found" in kubectl.run("get", "lease", "nodefall", "-n", "kube-system").stderr

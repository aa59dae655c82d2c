"""A run is aborted by kubectl: an annotation of the cluster lock's Lease."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any

import pytest

from chaos.cluster.client import connect
from chaos.cluster.lease_lock import ClusterLock, Identity
from tests.kit.kubectl_lab import Kubectl

pytestmark = pytest.mark.lab


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

"""A run is stopped by plain kubectl: an annotation of the Lease that is the cluster's lock."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any

import pytest

from chaos.kube.client import connect
from chaos.kube.lease_lock import ClusterLock, Identity
from tests.kit.kubectl_lab import Kubectl

pytestmark = pytest.mark.lab


def test_the_holder_is_told_why(free_lab: Any, kubectl: Kubectl) -> None:
    told: list[str] = []
    asked = threading.Event()

    def tell(why: str) -> None:
        told.append(why)
        asked.set()

    with closing(connect(free_lab.facts["kubeconfig"])) as kube:
        lock = ClusterLock(kube, "kube-system", Identity("ann@a/1", {}), time.time, tell)
        lock.acquire(lambda _: None)
        try:
            said = kubectl("annotate", "lease", "nodefall", "-n", "kube-system", "nodefall.dev/abort=pager went off")
            assert said == "lease.coordination.k8s.io/nodefall annotated\n"
            assert asked.wait(60)
            assert told[0] == "pager went off"
        finally:
            lock.release()
    assert "not found" in kubectl.run("get", "lease", "nodefall", "-n", "kube-system").stderr

"""The run that holds the cluster's lock, as the doctor reads it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.app.doctor import _with_lock
from chaos.app.wiring.lock import own_identity
from chaos.cluster.lease import lease_body
from chaos.core.clock import SystemClock
from chaos.core.labels import LOCK_NAME
from chaos.core.ports import Response
from chaos.engine.connection import ClusterConnection
from tests.kit.fakes import FakeKube
from tests.kit.preflightkit import observed


@pytest.mark.parametrize(("age", "run"), [(2.0, "r-1"), (600.0, "")])
def test_only_a_lock_that_is_renewed_names_the_run_under_way(age: float, run: str) -> None:
    clock, identity = SystemClock(), own_identity("r-1")
    lease: dict[str, Any] = lease_body("ns", identity.holder, 1, clock.now() - age, dict(identity.annotations))
    clock.close()
    path = f"/apis/coordination.k8s.io/v1/namespaces/ns/leases/{LOCK_NAME}"
    kube = FakeKube({path: Response(200, json.dumps(lease).encode(), {})})
    connection = SimpleNamespace(kube=kube, inventory=SimpleNamespace(cluster=SimpleNamespace(namespace="ns")))
    found = _with_lock(observed(), cast("ClusterConnection", connection))
    assert (found.lock_run, bool(found.lock_holder)) == (run, bool(run))

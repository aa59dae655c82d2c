"""Experiments on a real kind cluster: ``pytest -m kind``. Each must be decided, proven and wholly taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.api import run
from chaos.core.inventory import Inventory
from chaos.core.result import RunResult
from tests.kit.kindcluster import KindCluster

pytestmark = [pytest.mark.kind, pytest.mark.timeout(1800)]
EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def graceful(kind: KindCluster) -> None:
    """Skip where the nodes' image cannot shut down gracefully."""
    if why := kind.no_logind():
        pytest.skip(why)


def decided(experiment: str, kind: KindCluster, inventory: Inventory | None = None) -> RunResult:
    """The result; all that was done is taken back."""
    path = EXPERIMENTS / f"{experiment}.yaml"
    result = run(path, inventory or kind.inventory, agree=True, reports=kind.folder / "reports").result
    details = [result.headline, *(step.because for step in result.steps), *(undo.because for undo in result.undo)]
    assert all(undo.proven for undo in result.undo), details
    assert result.leftovers == (), details
    return result


def test_graceful_poweroff(kind: KindCluster, graceful: None, transport: str, request: pytest.FixtureRequest) -> None:
    """Its addresses may be others afterwards, over either transport."""
    inventory = kind.by_ssh(request.getfixturevalue("identity")) if transport == "ssh" else kind.inventory
    result = decided("graceful-poweroff", kind, inventory)
    assert result.status == "held", result.headline


def test_cancelled_shutdown(kind: KindCluster, graceful: None) -> None:
    result = decided("cancelled-shutdown", kind)
    assert result.status == "held", result.headline


def test_lock_after_cancel(kind: KindCluster, graceful: None) -> None:
    """A kubelet of v1.36.2 loses its lock in most tries, which is known, and undo gives it back."""
    result = decided("lock-after-cancel", kind)
    assert result.status == "held", result.headline


@pytest.mark.parametrize("experiment", ["partition-ridden-out", "power-cut", "drain-allowed", "lease-stops"])
def test_what_needs_no_logind(kind: KindCluster, experiment: str) -> None:
    """lease-stops stops the kubelet."""
    result = decided(experiment, kind)
    assert result.status == "held", result.headline

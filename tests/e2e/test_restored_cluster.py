"""A cluster that is restored, with its UID, from a backup that was made while a fault was there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_foreign_journal import MAPS, api, cordoned, elsewhere, experiment, killed, maps
from tests.kit.processes import lab, nodefall

pytestmark = pytest.mark.lab
NODE = "/api/v1/nodes/worker-2"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab(tmp_path_factory.mktemp("lab"), speed=16) as path:
        yield path


def backup(inventory: Path) -> dict[str, Any]:
    (journal,) = maps(inventory)
    return {
        "journal": journal,
        "node": api(inventory, "GET", NODE),
        "lease": api(inventory, "GET", f"{LEASES}/nodefall"),
    }


def restore(inventory: Path, saved: dict[str, Any]) -> None:
    """The journal, the lock and the Node of the backup: other versions, and the same UIDs as far as anybody can see."""
    node, journal, lease = saved["node"], saved["journal"], saved["lease"]
    change = {"spec": {"unschedulable": True}, "metadata": {"annotations": node["metadata"]["annotations"]}}
    api(inventory, "PATCH", NODE, change)
    for path, item in ((MAPS, journal), (LEASES, lease)):
        metadata = {key: item["metadata"].get(key) for key in ("name", "namespace", "labels", "annotations")}
        old = {"spec": item["spec"] | {"renewTime": "2026-11-01T00:00:00.000000Z"}} if path is LEASES else {}
        api(inventory, "POST", path, {**item, **old, "metadata": metadata})


@pytest.mark.nightly
def test_a_fault_that_comes_back_with_the_cluster(inventory: Path, tmp_path: Path) -> None:
    """The machine of the run has proof of its undo: it does not take the old copy for a pending one, and refuses."""
    run = killed(inventory, tmp_path)
    saved = backup(inventory)
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0
    assert not cordoned(inventory)
    restore(inventory, saved)
    refused = nodefall("run", experiment(tmp_path), "-i", inventory, "--plain", "--yes", cwd=tmp_path)
    assert refused.returncode == 4, refused.stderr
    assert f"run {run}" in refused.stderr
    assert cordoned(inventory), "nothing was undone without a word"
    found = re.search(r"run (kubectl .*)", refused.stderr)
    assert found, refused.stderr
    assert shlex.split(found[1])
    unconfirmed = elsewhere(run, "-i", inventory, cwd=tmp_path)  # another machine asks, as it has no proof
    assert unconfirmed.returncode == 4, unconfirmed.stderr
    assert elsewhere(run, "-i", inventory, "--yes", cwd=tmp_path).returncode == 0
    assert not cordoned(inventory)
    assert not maps(inventory)
    planned = nodefall("plan", experiment(tmp_path), "-i", inventory, cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr

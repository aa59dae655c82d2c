"""Journals and Leases of any content, planted in the cluster: what commands say of them, and that nothing is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.core.labels import MANAGED_BY_LABEL
from tests.e2e.test_foreign_journal import MAPS, api, experiment
from tests.kit.processes import lab, nodefall

pytestmark = pytest.mark.lab
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
STEP = {"id": 1, "step": "s", "action": "cordon", "node": "worker-1", "t": 1000.0, "state": {"cordoned": False}}


def journal(name: str, *changes: dict[str, Any], **identity: Any) -> dict[str, str]:
    """A journal of the run ``name`` that has one pending step for each of ``changes``."""
    run = {"run": name, "experiment": "e", "started": 1000.0, "holder": "x", "nodes": ["worker-1"], "format": 2}
    return {"run.json": json.dumps(run | identity), "entries.json": json.dumps([STEP | each for each in changes])}


PROOF = [{"fact": "node-ready", "value": False}]
TOUCH = {"command": {"type": "host", "argv": ["touch", "/tmp/planted"]}}
SHAPES: dict[str, dict[str, str]] = {
    "empty": {},
    "no-json": {"run.json": "{", "entries.json": "["},
    "null": {"run.json": "null", "entries.json": "null"},
    "list": {"run.json": "[1]", "entries.json": "{}"},
    "deep": journal("deep") | {"entries.json": "[" * 100_000 + "]" * 100_000},
    "later": journal("later", format=99),
    "other-name": journal("../../nodes"),
    "many": journal("many", *({"id": number} for number in range(6000))),
    "long": journal("long", {"step": "x" * 900_000}),
    "control": journal("control", {"step": "\x1b[31mred\nline\u202e", "action": "none"}, holder="\x1b[2J\n##[error]x"),
    "digits": journal("digits") | {"entries.json": json.dumps([STEP]).replace('"id": 1', f'"id": {"9" * 5000}')},
    "no-time": journal("no-time", started=1e308),
    "surrogate": journal("surrogate", {"step": "\ud800"}),
    "commands": journal(
        "commands", {"action": "command", "state": {"argv": ["touch", "/tmp/planted"]}, "undo": {"steps": [TOUCH]}}
    ),
    "former": journal("former", format=1)
    | {"pending.json": json.dumps([STEP | {"undo": {"steps": [TOUCH], "proof": PROOF}}])},
    "state": journal(
        "state",
        {"action": "scale", "state": {"path": "/api/v1/../../nodes/worker-1", "replicas": 0}},
        {"id": 2, "action": "kubelet-stop", "state": {"unit": "../reboot.target"}},
        {"id": 3, "action": "workload", "node": "", "state": {"name": "kube-system"}},
        {"id": 4, "action": "helper-pods", "node": "", "state": {"namespaces": ["../../nodes"]}},
    ),
    "node": journal("node", {"node": "../../namespaces/kube-system"}, {"node": "worker-2"}, nodes=["../x", "worker-1"]),
    "identity": journal("identity", {"identity": [{"fact": "../../x", "value": {"a": [1] * 1000}}]}),
}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab(tmp_path_factory.mktemp("lab"), speed=16) as path:
        yield path


def objects(inventory: Path) -> list[Any]:
    """The Nodes' specifications and the workloads."""
    nodes = api(inventory, "GET", "/api/v1/nodes")["items"]
    deployments = api(inventory, "GET", "/apis/apps/v1/deployments")["items"]
    return [[(each["metadata"]["name"], each["spec"]) for each in items] for items in (nodes, deployments)]


def run(*arguments: str | Path, cwd: Path) -> tuple[int, str]:
    """The exit code, and what is said, which has bounds and keeps to its lines."""
    done = nodefall(*arguments, cwd=cwd)
    said = done.stdout + done.stderr
    assert done.returncode not in (1, 70), said
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert not [line for line in said.splitlines() if line.startswith(("##[error]", "line"))]
    assert len(said) < 60_000
    return done.returncode, said


def test_journals_of_any_content(inventory: Path, tmp_path: Path) -> None:
    for name, data in SHAPES.items():
        metadata = {"name": f"nodefall-run-{name}", "labels": dict(MANAGED_BY_LABEL)}
        planted = api(inventory, "POST", MAPS, {"kind": "ConfigMap", "metadata": metadata, "data": data})
        assert planted["metadata"]["name"] == f"nodefall-run-{name}"
    before, reports = objects(inventory), tmp_path / "elsewhere"
    one = experiment(tmp_path)
    for arguments, code in (
        (("doctor", one), 4),
        (("status",), 3),
        (("undo", "--list"), 3),
        (("plan", one), 4),
        (("run", one, "--plain", "--yes"), 4),
    ):
        found, said = run(*arguments, "-i", inventory, cwd=tmp_path)
        assert found == code, said
    for name in SHAPES:
        found, said = run("undo", name, "-i", inventory, "--yes", "--reports", reports, cwd=tmp_path)
        assert found in (3, 64), (name, said)
    assert objects(inventory) == before
    assert not Path("/tmp/planted").exists()
    for name in SHAPES:
        api(inventory, "DELETE", f"{MAPS}/nodefall-run-{name}")


def test_a_lease_of_any_content_is_taken_over_or_named(inventory: Path, tmp_path: Path) -> None:
    one = experiment(tmp_path)
    spec = {
        "holderIdentity": "\x1b[2J" + "x" * 100_000,
        "leaseDurationSeconds": 2**31 - 1,
        "leaseTransitions": 2**31 - 1,
    }
    annotations = {"nodefall.dev/process": "[" * 5000, "nodefall.dev/abort": "\n" * 5000, "nodefall.dev/run": "../x"}
    lease = {"kind": "Lease", "metadata": {"name": "nodefall", "annotations": annotations}, "spec": spec}
    api(inventory, "POST", LEASES, lease)
    run("status", "-i", inventory, cwd=tmp_path)
    run("doctor", one, "-i", inventory, cwd=tmp_path)
    free = {"spec": {"holderIdentity": ""}}
    api(inventory, "PATCH", f"{LEASES}/nodefall", free)
    code, said = run("run", one, "-i", inventory, "--plain", "--yes", cwd=tmp_path)
    assert code in (0, 2), said

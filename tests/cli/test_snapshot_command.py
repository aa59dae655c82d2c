"""``nodefall snapshot`` and ``nodefall lab up --snapshot`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.app.snapshot.take import snapshot_permissions
from chaos.cli.app import cli, main
from chaos.core.permission import policy_rules
from tests.kit.command import command
from tests.kit.lab_copies import comparable, differences
from tests.kit.processes import EXPERIMENTS, LAB, lab, nodefall

WORKLOAD = EXPERIMENTS / "workloads" / "web-db-tiers.yaml"


def rights(*without: str) -> list[dict[str, Any]]:
    """Exactly what a snapshot needs, without some resources; and to start the lab, whose nodes are awaited."""
    return policy_rules(each for each in snapshot_permissions(False) if each.resource not in without)


@pytest.mark.lab
@pytest.mark.smoke
def test_a_copy_of_a_lab_has_the_same_snapshot(tmp_path: Path) -> None:
    with lab(tmp_path, "--workload", WORKLOAD) as inventory:
        done = command("snapshot", "-i", inventory, "--out", "first.gz", "--hosts", "9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counts = "4 nodes, 22 pods, 4 deployments, 1 statefulsets, 1 daemonsets, 1 poddisruptionbudgets"
    assert done.stdout.splitlines() == [
        f"first.gz: Kubernetes v1.36.2, {counts}",
        *(
            f"missing: flags of {name}: no pod of kube-system shows them; the defaults are assumed"
            for name in ("kube-controller-manager", "kube-apiserver")
        ),
    ]
    (tmp_path / "copy").mkdir()
    with lab(tmp_path / "copy", "--snapshot", tmp_path / "first.gz") as inventory:
        again = command("snapshot", "-i", inventory, "--out", "second.gz", "--hosts", "9", "--json", cwd=tmp_path)
        status = nodefall("lab", "status", "--json", cwd=tmp_path / "copy")
    assert json.loads(again.stdout)["counts"]["pods"] == 22
    assert differences(comparable(tmp_path / "first.gz"), comparable(tmp_path / "second.gz")) == []
    assert json.loads(status.stdout)["labs"][0]["workers"] == 3


@pytest.mark.lab
def test_exactly_the_rights_of_rbac_and_fewer(tmp_path: Path) -> None:
    with lab(tmp_path, rights=rights()) as inventory:
        done = command("snapshot", "-i", inventory, "--out", "s.gz", cwd=tmp_path)
    assert (done.returncode, "permitted" in done.stdout) == (0, False), done.stdout
    with lab(tmp_path, rights=rights("pods", "nodes/configz")) as inventory:
        done = command("snapshot", "-i", inventory, "--out", "s.gz", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "missing: pods: not permitted; the copy has none" in done.stdout
    assert "missing: kubelet configuration of control-plane, worker-1, worker-2, worker-3: not permitted" in done.stdout


def test_the_roles_of_a_snapshot() -> None:
    done = CliRunner().invoke(cli, ["rbac", "--snapshot", "--json"])
    document = json.loads(done.stdout)
    assert {(row["verb"], row["resource"]) for row in document["permissions"]} == {
        (each.verb, each.resource) for each in snapshot_permissions(False)
    }
    assert document["optional"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["snapshot", "-i", str(LAB), "--out", "s.gz"], "no lab is running"),
        (["snapshot", "--out", "s.gz"], "no inventory"),
        (["lab", "up", "--snapshot", "none.gz", "--nodes", "3"], "--nodes cannot be combined with --snapshot"),
        (["rbac"], "give EXPERIMENTS, or --snapshot"),
    ],
)
def test_usage(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NODEFALL_INVENTORY", raising=False)
    assert main(arguments) == 64
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "s.gz").write_bytes(b"plain")
    state = str(tmp_path / "state")
    done = command("lab", "up", "--snapshot", "s.gz", cwd=tmp_path, XDG_STATE_HOME=state)
    assert done.returncode == 64
    assert "s.gz: not a snapshot: Not a gzipped file" in done.stderr
    assert json.loads(command("lab", "status", "--json", cwd=tmp_path, XDG_STATE_HOME=state).stdout) == {"labs": []}

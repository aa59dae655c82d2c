"""``--context`` and ``--namespace``: which cluster and lock a command uses, and where they have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.app import main
from chaos.cli.cluster import lock_status
from chaos.cluster import client, cluster_state
from chaos.core.errors import Refused
from chaos.core.inventory import Cluster, Inventory
from tests.kit.processes import EXPERIMENTS, LAB

STAGING = """\
apiVersion: nodefall.dev/v1alpha1
kind: Inventory
metadata: {name: staging}
cluster: {kubeconfig: config, context: blue, expectUID: u-1, namespace: chaos}
"""


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Inventory]:
    """The inventories with which the commands connect; the connection is then refused."""
    found: list[Inventory] = []

    def connect(inventory: Inventory) -> None:
        found.append(inventory)
        raise Refused("seen")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NODEFALL_INVENTORY", raising=False)
    monkeypatch.setattr(lock_status, "connect_cluster", connect)
    (tmp_path / "staging.yaml").write_text(STAGING)
    return found


def cluster_of(inventory: Inventory) -> Cluster:
    assert inventory.cluster is not None
    return inventory.cluster


@pytest.mark.parametrize("command", ["status", "abort", "watch"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ("blue", "chaos")),
        (["--context", "green"], ("green", "chaos")),
        (["-n", "kube-system"], ("blue", "kube-system")),
        (["--context", "green", "--namespace", "other"], ("green", "other")),
    ],
)
def test_they_replace_what_the_inventory_says(
    used: list[Inventory], command: str, options: list[str], expected: tuple[str, str]
) -> None:
    assert main([command, "-i", "staging.yaml", *options]) == 4
    cluster = cluster_of(used[0])
    assert (cluster.context, cluster.namespace) == expected
    assert cluster.expect_uid == "u-1", "a context of another cluster is still refused"


def test_a_context_alone_names_a_cluster_of_the_kubeconfig(
    used: list[Inventory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", lambda kubeconfig, context: (kubeconfig, context))
    monkeypatch.setattr(cluster_state, "cluster_uid", lambda kube: f"uid of {kube[1]}")
    assert main(["status", "--context", "green", "-n", "chaos"]) == 4
    cluster = cluster_of(used[0])
    assert (cluster.kubeconfig, cluster.context, cluster.namespace) == ("", "green", "chaos")
    assert cluster.expect_uid == "uid of green"


EXPERIMENT = str(EXPERIMENTS / "graceful-poweroff.yaml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", EXPERIMENT, "--context", "green"], "no inventory: give --inventory FILE"),
        (["run", EXPERIMENT, "-i", str(LAB), "--context", "green"], "this inventory starts a lab"),
        (["run", EXPERIMENT, "-i", "staging.yaml", "-n", "shop"], "No such option '-n'"),
        (["plan", EXPERIMENT, "-i", str(LAB), "--context", "green"], "this inventory starts a lab"),
        (["doctor", EXPERIMENT, "-i", str(LAB), "--context", "green"], "this inventory starts a lab"),
        (["status", "-n", "shop"], "no inventory: give --inventory FILE"),
        (["undo", "--list", "--context", "green"], "no effect: without --inventory"),
        (["undo", "--list", "-i", str(LAB), "-n", "shop"], "this inventory starts a lab"),
    ],
)
def test_where_they_have_no_effect(
    used: list[Inventory], arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 64
    assert words in capsys.readouterr().err
    assert not used

"""--fleet of the game day's commands: what does not go with it, and the rights of whoever runs a fleet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.app import cli
from tests.kit.fleets import write_fleet, write_json


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "missing argument GAMEDAY"),
        (["run", "day.yaml", "--fleet", "f.yaml"], "GAMEDAY does not go with --fleet"),
        (["run", "--fleet", "f.yaml", "-i", "x"], "--inventory does not go with --fleet"),
        (["run", "--fleet", "f.yaml", "--seed", "0"], "--seed does not go with --fleet"),
        (["run", "--fleet", "f.yaml", "--scheduled"], "--scheduled does not go with --fleet"),
        (["run", "day.yaml", "--keep"], "--keep is for --fleet"),
        (["halt", "--keep"], "--keep is for --fleet"),
        (["status", "days", "--fleet", "f.yaml"], "GAMEDAY does not go with --fleet"),
        (["halt", "-i", "x", "--fleet", "f.yaml"], "--inventory does not go with --fleet"),
        (["resume", "days", "--reason", "x", "--fleet", "f.yaml"], "GAMEDAY does not go with --fleet"),
        (["report", "last", "--fleet", "f.yaml"], "DIRECTORY does not go with --fleet"),
        (["run", "--fleet", "none.yaml"], "none.yaml"),
    ],
)
def test_what_does_not_go_together(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = CliRunner().invoke(cli, ["gameday", *arguments])
    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception}"


def test_the_rights_of_a_fleet(tmp_path: Path) -> None:
    """Whoever runs it can apply, watch and delete what it applies, and nothing of it is unnamed."""
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "a"}}
    write_json(tmp_path / "a.json", head | {"cluster": {"kubeconfig": "kube/config", "expectUID": "u"}})
    path = write_fleet(tmp_path, ["a"], ["one"])
    done = CliRunner().invoke(cli, ["rbac", str(path), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["permissions"]
    found = {(row["verb"], row["resource"], row["namespace"], row["name"]) for row in rows}
    assert {("create", "jobs", "nodefall", ""), ("delete", "jobs", "nodefall", "")} <= found
    assert ("patch", "serviceaccounts", "nodefall", "fleet-nodefall-europe") in found
    assert ("update", "leases", "kube-system", "nodefall-gameday-europe.fleet") in found
    assert ("patch", "nodes", "", "") in found, "those of the day: no one can grant what they do not have"
    assert not any(row["verb"] == "*" or row["resource"] == "secrets" for row in rows)
    assert not any(row["verb"] == "delete" and row["resource"].startswith(("persist", "names")) for row in rows)

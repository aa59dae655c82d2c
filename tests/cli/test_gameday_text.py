"""A game day, a fleet and a plan in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.app import cli
from chaos.cli.gameday.plan import render, to_document
from chaos.cli.output import to_json
from chaos.cli.run.plan import _step
from chaos.core.action import FailsafeTimer, Undo
from chaos.core.plan import PlannedStep
from chaos.core.windows import powershell
from chaos.gameday.state import Approval, DayRun, DayState, Halt, RunKey, RunStatus, Waiting
from tests.kit.fleets import write_fleet, write_json

HASH = "a" * 64
STATE = DayState(
    day="mon",
    gameday="weekly",
    plan_hash=HASH,
    seed=7,
    created=1_790_000_000.0,
    order="by-entry",
    parallel=1,
    holder="me@here",
    epoch=3,
    runs=(
        DayRun(
            *(RunKey("cut", "", 1), 1, "stop", RunStatus.DONE, "cut-1a2b3c", True, 1, "interrupted", "pager\x1b[2J"),
            *(1_790_000_000.0, 1_790_000_061.5),
        ),
        DayRun(RunKey("drain", "", 1), 2, "stop"),
    ),
    halts=(Halt("ada", 1_790_000_100.0, "pager", "bob", 1_790_000_200.0, "over"), Halt("eve", 1_790_000_300.0, "")),
    approvals=(
        Approval("ada", 1_790_000_000.0, HASH, "cut", "ada@desk"),
        Approval("eve", 1_790_000_000.0, "b" * 64),
    ),
    waiting=Waiting("the window", "freeze", 1_790_000_300.0, 1_790_000_400.0),
)


def test_a_day_in_words() -> None:
    assert list(render(STATE)) == [
        "day mon of weekly halted: 1 interrupted, 1 pending",
        f"plan {HASH}, seed 7",
        "entry      status       begun                 took  run         reason",
        "cut (1)    interrupted  2026-09-21T14:13:20Z  1m2s  cut-1a2b3c  pager\\x1b[2J",
        "drain (1)  pending",
        "halted 2026-09-21T14:15:00Z by ada: pager",
        "resumed 2026-09-21T14:16:40Z by bob: over",
        "halted 2026-09-21T14:18:20Z by eve",
        "approved 2026-09-21T14:13:20Z by ada (ada@desk): entry cut, plan aaaaaaaaaaaa",
        "approved 2026-09-21T14:13:20Z by eve: the day, plan bbbbbbbbbbbb, which does not count: of another plan",
        "waiting since 2026-09-21T14:18:20Z until 2026-09-21T14:20:00Z for the window: freeze",
    ]


def test_as_json() -> None:
    document = to_document(STATE)
    assert (document["status"], document["exit_code"], document["runs"][0]["verdict"]) == ("halted", 2, "interrupted")
    assert '"day": "mon"' in to_json(document)


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


def test_a_failsafe_task_is_shown_as_the_name_of_its_script() -> None:
    timer = FailsafeTimer("nodefall-r1-stop", 60.0, powershell("failsafe-start-service", service="kubelet"))
    step = PlannedStep("stop", "kubelet-stop", "win-1", {}, {}, (), Undo(), ("kubelet-state",), (), timer)
    expected = (
        "  arm     failsafe timer nodefall-r1-stop: powershell.exe: failsafe-start-service"
        ' {"service":"kubelet"} after 60s, read back'
    )
    assert expected in _step(step)

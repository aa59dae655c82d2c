"""``gameday halt`` and ``resume`` on a cluster with several days."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from chaos.app.day.document import load_game_day
from chaos.app.day.store import DayStore, existing
from chaos.cli.app import cli
from chaos.cli.gameday import control
from chaos.cli.gameday.control import ApproveOptions, HaltOptions, approve, halt_days, resume_day
from chaos.cli.gameday.plan import render, to_document
from chaos.cli.output import to_json
from chaos.cli.run.plan import _step
from chaos.cluster.errors import KubeUnreachable
from chaos.core.action import FailsafeTimer, Undo
from chaos.core.errors import NodefallError, Refused
from chaos.core.plan import PlannedStep
from chaos.core.windows import powershell
from chaos.gameday.state import Approval, DayRun, DayState, Halt, RunKey, RunStatus, Waiting
from chaos.gameday.transitions import end, halt
from tests.kit.day_session import Day
from tests.kit.fleets import write_fleet, write_json
from tests.kit.gamedays import write_cordon, write_day

HALT = HaltOptions("pager", "ada", "0s")
OF_ENTRY = [{"kind": "approval", "by": ["grace"]}]
ENTRIES = [{"experiment": "one.yaml"}, {"experiment": "two.yaml", "gates": OF_ENTRY}]
OF_DAY = [{"kind": "approval", "by": ["ada"]}, {"kind": "no-other-run"}]


@pytest.fixture(name="stores")
def _stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Day, DayStore, DayStore]:
    """A cluster with the days ``days`` and ``weekly``, none of which has begun."""
    day = Day(tmp_path, ["one"], 1000.0)
    weekly = DayStore(day.kube, "kube-system", "weekly", day.clock.now)
    weekly.update(lambda _: replace(day.session.state, gameday="weekly"))

    @contextmanager
    def connect(_: Any) -> Iterator[Any]:
        yield day.session.connection

    monkeypatch.setattr(control, "connect_cluster", connect)
    monkeypatch.setattr(control, "command_inventory", lambda _: SimpleNamespace(lab=None))
    return day, day.session.store, weekly


def state_of(store: DayStore) -> DayState:
    state = store.read()
    assert state
    return state


def test_one_day_that_cannot_be_halted_keeps_no_other_from_being_halted(stores: tuple[Day, DayStore, DayStore]) -> None:
    day, first, second = stores
    failures = [KubeUnreachable("refused", "no answer")]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    day.kube.before_write = fail_once
    with pytest.raises(NodefallError, match="game day days was not halted: no answer"):
        halt_days(None, None, HALT)
    assert [bool(state_of(store).halt) for store in (first, second)] == [False, True]


def test_a_day_that_was_ended_is_not_one_to_be_resumed(stores: tuple[Day, DayStore, DayStore]) -> None:
    _, first, second = stores
    first.update(existing(lambda state: end(state, "ada", "enough", 1.0)))
    second.update(existing(lambda state: halt(state, "ada", "pager", 1.0)))
    assert resume_day(None, None, "bob", "it was something else") == 0
    assert [bool(state_of(store).halt) for store in (first, second)] == [True, False]


def refusal(day: Path, *, by: str = "ada", entry: str = "", plan_hash: str = "") -> Refused:
    with pytest.raises(Refused) as refused:
        approve(ApproveOptions(day, str(day.parent / "no-cluster.yaml"), entry, by, plan_hash, ""))
    return refused.value


@pytest.mark.parametrize(
    ("by", "entry", "message", "hint"),
    [
        ("mallory", "", "no gate of the day asks for mallory", "approve as one of them with --by: ada, grace"),
        ("mallory", "two", "no gate of entry two asks for mallory", "approve as one of them with --by: ada, grace"),
        ("grace", "one", "no gate of entry one asks for grace", "approve as one of them with --by: ada"),
        ("Ada", "", "no gate of the day asks for Ada", "approve as one of them with --by: ada, grace"),
        ("ada", "tow", "has no entry 'tow'", "did you mean 'two'?"),
    ],
)
def test_a_person_whom_no_gate_names(tmp_path: Path, by: str, entry: str, message: str, hint: str) -> None:
    day = write_day(tmp_path, ["one", "two"], gates=OF_DAY, entries=ENTRIES)
    error = refusal(day, by=by, entry=entry)
    assert message in error.message
    assert error.hint == hint


def test_a_day_that_asks_for_no_approval(tmp_path: Path) -> None:
    error = refusal(write_day(tmp_path, ["one"]))
    assert (error.hint, "no gate of the day asks for ada" in error.message) == ("no gate asks for an approval", True)


def test_the_hash_of_an_older_plan(tmp_path: Path) -> None:
    day = write_day(tmp_path, ["one"], gates=OF_DAY)
    older = load_game_day(day).hash
    write_cordon(tmp_path / "one.yaml", lasts="41s")
    newer = load_game_day(day).hash
    for wrong in (older, older[:12], f"{newer}0", newer.upper(), "0000"):
        error = refusal(day, plan_hash=wrong)
        assert error.message == f"not approved: the plan of {day} is {newer[:12]}, not {wrong[:12]}"
        assert "approve the hash that it prints" in (error.hint or "")


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
        (["run", "day.yaml", "--fleet", "f.yaml"], "GAMEDAY cannot be combined with --fleet"),
        (["run", "--fleet", "f.yaml", "-i", "x"], "--inventory cannot be combined with --fleet"),
        (["run", "--fleet", "f.yaml", "--seed", "0"], "--seed cannot be combined with --fleet"),
        (["run", "--fleet", "f.yaml", "--scheduled"], "--scheduled cannot be combined with --fleet"),
        (["run", "day.yaml", "--keep"], "--keep is for --fleet"),
        (["halt", "--keep"], "--keep is for --fleet"),
        (["status", "days", "--fleet", "f.yaml"], "GAMEDAY cannot be combined with --fleet"),
        (["halt", "-i", "x", "--fleet", "f.yaml"], "--inventory cannot be combined with --fleet"),
        (["resume", "days", "--reason", "x", "--fleet", "f.yaml"], "GAMEDAY cannot be combined with --fleet"),
        (["report", "last", "--fleet", "f.yaml"], "DIRECTORY cannot be combined with --fleet"),
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

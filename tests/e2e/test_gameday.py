"""Game days as processes: run, killed and resumed, halted, approved."""

from __future__ import annotations

import json
import os
import random
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.kit.elsewhere import nodefall_elsewhere
from tests.kit.gamedays import (
    Halter,
    day_state,
    faults,
    kill_day_at,
    kill_day_later,
    left_behind,
    let_go_on,
    run_day,
    start_day,
    verdicts_of,
    write_day,
)
from tests.kit.processes import EXPERIMENTS, WALL, lab, nodefall, operations, wait_for
from tests.kit.web_server import web_server

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * WALL)]
TWO = ["one", "two"]
STEADY = "phase: steady state"  # lasts until the test ends it: it may be over before a signal arrives
SLOW = pytest.mark.nightly  # more of what another case shows, at ten seconds of CPU each


@pytest.mark.smoke
def test_a_day_of_two_runs_each_once_and_a_finished_day_is_only_reported(tmp_path: Path) -> None:
    write_day(tmp_path, TWO)
    with lab(tmp_path) as inventory:
        done = run_day(inventory, tmp_path, "--id", "monday", "--json")
        assert done.returncode == 0, done.stderr
        state = json.loads(done.stdout)
        assert (state["day"], state["status"], state["exit_code"]) == ("monday", "finished", 0)
        assert verdicts_of(state) == {"one": "held", "two": "held"}
        assert "waiting for the pause, until" in done.stderr
        assert faults(tmp_path) == {"one": 1, "two": 1}
        assert left_behind(inventory, tmp_path) == []
        (page,) = tmp_path.glob("reports/gamedays/days/*/report.html")
        page.unlink()
        again = run_day(inventory, tmp_path)
        assert again.returncode == 0
        assert "day monday of days finished: 2 held; to start another day, name it with --id" in again.stderr
        assert page.exists()
        assert faults(tmp_path) == {"one": 1, "two": 1}
        assert nodefall("gameday", "status", "-i", inventory, cwd=tmp_path).returncode == 0
        for run in state["runs"]:  # each directory is that of an ordinary run
            (directory,) = tmp_path.glob(f"reports/{run['key']['entry']}/*")
            judged = nodefall("judge", directory, cwd=tmp_path)
            assert judged.returncode == 0, judged.stderr
            assert nodefall("undo", run["run"], cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param("is running: 2 pending", "held", marks=SLOW),
        pytest.param("phase: plan", "held", marks=SLOW),
        pytest.param(STEADY, "held", marks=SLOW),
        ("step cordon on", "interrupted"),
        pytest.param("phase: roll back", "interrupted", marks=SLOW),
        pytest.param("entry one (1) is held", "held", marks=SLOW),
    ],
)
def test_killed_the_same_command_goes_on(tmp_path: Path, text: str, first: str) -> None:
    """Before its fault a run is repeated, after it it is undone and never begins again."""
    write_day(tmp_path, TWO, awaits=text == STEADY)
    with lab(tmp_path, speed=10) as inventory:
        kill_day_at(text, inventory, tmp_path)
        if text == STEADY:
            let_go_on(inventory, tmp_path)
        done = run_day(inventory, tmp_path, "--json")
        state = json.loads(done.stdout)
        assert verdicts_of(state) == {"one": first, "two": "held"}, done.stderr
        assert done.returncode == (0 if first == "held" else 2)
        assert faults(tmp_path) == {"one": 1, "two": 1}
        assert left_behind(inventory, tmp_path) == []
        assert state["epoch"] == 2


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_by_a_signal_it_undoes_and_the_same_command_goes_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    text = "step cordon on" if number == signal.SIGINT else STEADY
    write_day(tmp_path, ["one"], awaits=text == STEADY)
    with lab(tmp_path, speed=10) as inventory:
        process = start_day(inventory, tmp_path)
        wait_for(process, text)
        process.send_signal(number)
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == code, output
        assert "the same command goes on with the day" in output
        assert left_behind(inventory, tmp_path) == []
        expected = {signal.SIGINT: "interrupted", signal.SIGTERM: "pending"}
        assert verdicts_of(day_state(inventory, tmp_path)) == {"one": expected[number]}
        if text == STEADY:
            let_go_on(inventory, tmp_path)
        done = run_day(inventory, tmp_path)
        assert done.returncode == (2 if number == signal.SIGINT else 0), done.stderr
        assert faults(tmp_path) == {"one": 1}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("text", "first", "code"),
    [
        ("phase: plan", "pending", 0),
        (STEADY, "pending", 0),
        ("step cordon on", "interrupted", 2),
        ("phase: recovery", "held", 0),
        ("waiting for the pause", "held", 0),
    ],
)
def test_halted_in_every_phase_and_resumed(tmp_path: Path, text: str, first: str, code: int) -> None:
    write_day(tmp_path, TWO, pause={"atLeast": "30s", "recovery": "5m"}, lasts="30s", awaits=text == STEADY)
    with lab(tmp_path, speed=10) as inventory:  # slow, so that the phase still lasts when the halt is there
        halter = Halter(inventory)
        process = start_day(inventory, tmp_path, "--id", "monday")
        wait_for(process, text)
        halter.halt("pager")
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 2, output
        assert "error: game day halted by ada: pager" in output
        assert left_behind(inventory, tmp_path) == []
        state = day_state(inventory, tmp_path)
        assert (state["status"], verdicts_of(state)) == ("halted", {"one": first, "two": "pending"})
        if first == "interrupted":
            result = json.loads(next(tmp_path.glob("reports/**/result.json")).read_text())
            left_open = {verdict["because"] for verdict in result["hypothesis"] if verdict["status"] != "held"}
            assert left_open == {"not judged: the run was interrupted first"}
        again = run_day(inventory, tmp_path)
        assert again.returncode == 2
        assert "game day halted by ada: pager" in again.stderr
        assert "begins" not in again.stderr
        if text == STEADY:
            let_go_on(inventory, tmp_path)
        resumed = nodefall(
            *("gameday", "resume", "-i", inventory, "--by", "bob", "--reason", "it was something else"), cwd=tmp_path
        )
        assert resumed.returncode == 0, resumed.stderr
        done = run_day(inventory, tmp_path, "--json")
        assert done.returncode == code, done.stderr
        state = json.loads(done.stdout)
        assert verdicts_of(state) == {"one": first if first == "interrupted" else "held", "two": "held"}
        (halt,) = state["halts"]
        assert (halt["by"], halt["resumed_by"], halt["resumed_because"]) == ("ada", "bob", "it was something else")
        assert faults(tmp_path) == {"one": 1, "two": 1}


@pytest.mark.nightly
@pytest.mark.root
def test_ended_for_good_from_another_machine(tmp_path: Path) -> None:
    """The undo follows the halt, which waits for it, and nothing begins any more."""
    write_day(tmp_path, TWO, lasts="1m")
    with lab(tmp_path, speed=10) as inventory:
        process = start_day(inventory, tmp_path, "--id", "monday")
        wait_for(process, "step cordon on")
        halted = nodefall_elsewhere(
            *("gameday", "halt", "days", "-i", inventory, "--by", "ada", "--reason", "pager", "--end"), cwd=tmp_path
        )
        assert halted.returncode == 0, halted.stderr
        assert "day monday of days halted" in halted.stderr
        assert left_behind(inventory, tmp_path) == []
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 2, output
        state = day_state(inventory, tmp_path)
        assert (state["status"], verdicts_of(state)) == ("finished", {"one": "interrupted", "two": "skipped"})
        assert state["runs"][1]["reason"] == "ended by ada: pager"
        (recording,) = tmp_path.glob("reports/one/*/recording.jsonl.gz")
        later = [phase for at, phase in operations(recording) if at > state["halts"][0]["at"]]
        assert later[-2:] == ["undo", "undone"]
        assert "begin" not in later
        done = run_day(inventory, tmp_path)
        assert done.returncode == 2
        assert faults(tmp_path) == {"one": 1}


@pytest.mark.nightly
def test_nodefall_abort_halts_the_day(tmp_path: Path) -> None:
    write_day(tmp_path, TWO, lasts="1m")
    with lab(tmp_path, speed=10) as inventory:
        process = start_day(inventory, tmp_path)
        wait_for(process, "step cordon on")
        assert nodefall("abort", "-i", inventory, "--reason", "pager", cwd=tmp_path).returncode == 0
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 2, output
        assert "game day halted by nodefall abort: pager" in output
        assert verdicts_of(day_state(inventory, tmp_path)) == {"one": "interrupted", "two": "pending"}


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    write_day(tmp_path, ["one"], lasts="1m")
    with lab(tmp_path, speed=10) as inventory:
        process = start_day(inventory, tmp_path)
        wait_for(process, "step cordon on")
        second = run_day(inventory, tmp_path)
        assert second.returncode == 4
        assert "game day days is being run: cluster in use by" in second.stderr
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WALL)
        assert process.returncode == 143


APPROVAL = [{"kind": "approval", "by": ["ada", "grace"], "onFailure": "wait", "wait": "48h"}]


def approve(inventory: Path, cwd: Path, *options: str) -> tuple[int, str]:
    done = nodefall("gameday", "approve", "day.yaml", "-i", inventory, *options, cwd=cwd)
    return done.returncode, done.stderr


@pytest.mark.nightly
def test_an_approval_of_another_plan_does_not_count(tmp_path: Path) -> None:
    write_day(tmp_path, ["one"], gates=APPROVAL)
    with lab(tmp_path, speed=10) as inventory:
        process = start_day(inventory, tmp_path)
        wait_for(process, "awaits ada or grace")
        document = json.loads((tmp_path / "day.yaml").read_text())
        document["spec"]["title"] = "Another plan"
        (tmp_path / "day.yaml").write_text(json.dumps(document))
        code, error = approve(inventory, tmp_path, "--day", "--by", "ada")
        assert code == 4
        assert "approval of another plan" in error
        document["spec"]["title"] = "Days"
        (tmp_path / "day.yaml").write_text(json.dumps(document))
        assert approve(inventory, tmp_path, "--day", "--by", "ada", "--plan-hash", "0000")[0] == 4
        assert approve(inventory, tmp_path, "--day", "--by", "mallory")[0] == 4
        assert "approvals" not in day_state(inventory, tmp_path)
        assert faults(tmp_path) == {}
        code, error = approve(inventory, tmp_path, "--day", "--by", "grace")
        assert code == 0, error
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 0, output
        state = day_state(inventory, tmp_path)
        assert [(each["by"], each["plan_hash"]) for each in state["approvals"]] == [("grace", state["plan_hash"])]


@pytest.mark.nightly
def test_approved_beforehand(tmp_path: Path) -> None:
    """By another machine, before anybody has run the day; after a change of the plan it does not count any more."""
    gates = [{"kind": "approval", "by": ["ada"], "onFailure": "skip"}]
    write_day(tmp_path, TWO, gates=gates)
    with lab(tmp_path) as inventory:
        for _ in range(2):
            assert approve(inventory, tmp_path, "--entry", "two", "--by", "ada")[0] == 0
        state = day_state(inventory, tmp_path)
        assert verdicts_of(state) == {"one": "pending", "two": "pending"}
        assert [(each["by"], each["entry"]) for each in state["approvals"]] == [("ada", "two")]
        done = run_day(inventory, tmp_path, "--json")
        assert done.returncode == 2, done.stderr
        assert verdicts_of(json.loads(done.stdout)) == {"one": "skipped", "two": "held"}
        assert "skipping one (1): gate approved by ada" in done.stderr
        assert approve(inventory, tmp_path, "--day", "--by", "ada")[0] == 4  # the day is finished
        assert approve(inventory, tmp_path, "--day", "--by", "ada", "--id", "next")[0] == 0
        write_day(tmp_path, ["one"], gates=gates)
        refused = run_day(inventory, tmp_path, "--id", "next")
        assert refused.returncode == 4, refused.stderr
        assert verdicts_of(day_state(inventory, tmp_path)) == {"one": "skipped"}


@pytest.mark.root
@pytest.mark.nightly
def test_another_machine_goes_on(tmp_path: Path) -> None:
    """It has neither the lock files nor the reports: the undo comes from the cluster, and must be confirmed."""
    write_day(tmp_path, TWO)
    with lab(tmp_path) as inventory:
        kill_day_at("step cordon on", inventory, tmp_path)
        command = ("gameday", "run", "day.yaml", "-i", inventory, "--reports", "other-reports", "--plain")
        refused = nodefall_elsewhere(*command, cwd=tmp_path)
        assert refused.returncode == 4, refused.stderr
        assert "not confirmed: the undo of" in refused.stderr
        done = nodefall_elsewhere(*command, "--yes", "--json", cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert verdicts_of(json.loads(done.stdout)) == {"one": "interrupted", "two": "held"}
        assert left_behind(inventory, tmp_path) == []


@pytest.mark.nightly
def test_a_changed_plan_does_not_go_on_with_a_day_that_has_begun(tmp_path: Path) -> None:
    write_day(tmp_path, TWO)
    with lab(tmp_path) as inventory:
        kill_day_at("entry one (1) is held", inventory, tmp_path)
        write_day(tmp_path, ["one"])
        refused = run_day(inventory, tmp_path)
        assert refused.returncode == 4
        assert "the plan of days has changed since day" in refused.stderr


@pytest.mark.nightly
def test_the_window_closes_before_an_entry_fits(tmp_path: Path) -> None:
    """In the lab's time: the day waits for the next opening, which says why, and then runs."""
    opening = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=20)
    hours = {"from": f"{opening:%H:%M}", "to": f"{opening + timedelta(minutes=30):%H:%M}"}
    window = {"zone": "UTC", "open": [hours]}
    write_day(tmp_path, ["one"], window=window)
    with lab(tmp_path) as inventory:
        done = run_day(inventory, tmp_path, "--json")
        assert done.returncode == 0, done.stderr
        begun = json.loads(done.stdout)["runs"][0]["begun"]
        assert "waiting for the window for one (1), until" in done.stderr
        assert "it is closed: outside the hours" in done.stderr
        assert 0 <= begun - opening.timestamp() < 1800


@pytest.mark.nightly
def test_the_lab_of_the_command_is_that_of_the_day(tmp_path: Path) -> None:
    """The tutorial's first command."""
    write_day(tmp_path, ["one"])
    done = nodefall("gameday", "run", "day.yaml", "-i", EXPERIMENTS.parent / "hosts" / "lab.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "day" in done.stdout
    assert sorted(os.listdir(tmp_path / "reports")) == ["gamedays", "one"]


@pytest.mark.nightly
def test_receivers_hear_of_the_day_and_a_dead_one_does_not_matter(tmp_path: Path) -> None:
    with web_server() as server, lab(tmp_path) as inventory:
        occasions = ["start", "entry", "violated", "halted", "end"]
        hooks = [{"kind": "webhook", "url": url, "on": occasions} for url in (server.url, "http://127.0.0.1:1/")]
        write_day(tmp_path, ["one"], notify=hooks)
        done = run_day(inventory, tmp_path, "--json")
        assert done.returncode == 0, done.stderr
        kinds = [each.json["event"] for each in server.received]
        assert kinds == ["day-begins", "entry-begins", "entry-ends", "day-ends"]
        assert "notification to webhook http://127.0.0.1:1/ failed" in done.stderr
        state = json.loads(done.stdout)
        assert {each["receiver"] for each in state["undelivered"]} == {"webhook http://127.0.0.1:1/"}


FIVE = ["cordon", "no-execute-untolerated", "drain-allowed", "fast-reboot", "graceful-poweroff"]
KILLS, MOST_STARTS = 10, 40
FAULT = "phase: inject"


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_killed_ten_times_at_random_moments_each_experiment_runs_once(tmp_path: Path) -> None:
    """Five shipped experiments in a window; the seed of the moments is printed by a failure.

    They alternate between the time before a fault, with the takeover, the pause and the window, and that from the fault
    into the next entry. Those that are left when the day is over hit a finished day.
    """
    seed = int(os.environ.get("NODEFALL_GAMEDAY_SEED") or random.SystemRandom().randrange(2**32))
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret
    window = {"zone": "America/New_York", "open": [{"from": "00:00", "to": "12:00"}, {"from": "12:00", "to": "24:00"}]}
    write_day(tmp_path, [], window=window, entries=[{"experiment": str(EXPERIMENTS / f"{name}.yaml")} for name in FIVE])
    killed: list[str] = []
    with lab(tmp_path) as inventory:
        for number in range(MOST_STARTS):
            after, lines = (FAULT, 24) if number % 2 else ("", 9)
            last = kill_day_later(inventory, tmp_path, after, chance.randrange(lines), 0.5 * chance.random())
            killed += [last] if last else []
            if len(killed) == KILLS:
                break
        story = f"seed {seed}, killed after {killed}"
        assert len(killed) == KILLS, story
        done = run_day(inventory, tmp_path)
        assert done.returncode in (0, 2), f"{story}: {done.stderr}"
        state = day_state(inventory, tmp_path)
        assert state["status"] == "finished", story
        ends = verdicts_of(state)
        assert set(ends) == set(FIVE), story
        assert set(ends.values()) <= {"held", "interrupted"}, f"{story}: {ends}"
        assert faults(tmp_path) == dict.fromkeys(FIVE, 1), story
        assert left_behind(inventory, tmp_path) == [], story

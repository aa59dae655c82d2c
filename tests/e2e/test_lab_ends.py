"""How labs that stay end badly, and what is left of them: nothing."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chaos.core.clock import RemoteClock, SystemClock
from tests.kit.processes import EXPERIMENTS, LAB, WALL, environment, nodefall, start, wait_for
from tests.kit.staying_processes import Labs, get, labs_below, until

pytestmark = pytest.mark.lab


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Labs]:
    with labs_below(tmp_path) as found:
        yield found


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not a lab, and must not be killed."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def rewrite(labs: Labs, **changes: object) -> None:
    path = labs.directory / "lab" / "lab.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.nightly
def test_a_killed_lab_is_dead_and_the_next_one_takes_its_place(labs: Labs) -> None:
    first = labs.up("--out", "copy.json")
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: labs.processes() == [])
    status = labs.run("status")
    assert status.returncode == 2
    assert "lab: dead" in status.stdout
    assert "remove its files in " in status.stdout
    second = labs.up()
    assert second["apiServer"] != first["apiServer"]
    assert labs.status() == second
    assert not (labs.cwd / "copy.json").exists()
    os.kill(second["pid"], signal.SIGKILL)
    until(lambda: labs.processes() == [])
    assert labs.run("down").stderr == "the lab 'lab' was dead; its files were removed\n"
    assert labs.left() == []


def test_only_the_process_of_the_lab_is_killed(labs: Labs, bystander: subprocess.Popen[bytes]) -> None:
    lab = labs.up()
    state = json.loads((labs.directory / "lab" / "lab.json").read_text())
    started = int(Path(f"/proc/{bystander.pid}/stat").read_text().split()[21])
    for changes in ({"pid": bystander.pid}, {"pid": bystander.pid, "startTicks": started}, {"mark": "x"}):
        rewrite(labs, **changes)
        done = labs.run("down")
        assert done.returncode == 4
        assert "is not visible here, or its ID was reused" in done.stderr
        rewrite(labs, **state)
    (labs.directory / "lab" / "lab.json").write_text("{")
    done = labs.run("down")
    assert done.returncode == 4
    assert "lab.json" in done.stderr
    assert bystander.poll() is None
    assert get(lab, "/version")
    (labs.directory / "lab" / "lab.json").write_text(json.dumps(state))
    assert labs.run("down").returncode == 0
    assert labs.left() == []


def test_the_process_id_of_a_dead_lab_may_be_reused(labs: Labs, bystander: subprocess.Popen[bytes]) -> None:
    os.kill(labs.up()["pid"], signal.SIGKILL)
    until(lambda: labs.processes() == [])
    rewrite(labs, pid=bystander.pid)
    assert labs.status()["state"] == "dead"
    assert labs.run("down").returncode == 0
    assert bystander.poll() is None
    assert labs.left() == []


def _foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    (path / "thesis.tex").write_text("years of work")


def _open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def _link(path: Path) -> None:
    path.symlink_to(path.parent, target_is_directory=True)


FOREIGN = [
    (_foreign, "it contains files that no lab has written"),
    (_open, "other users can access it"),
    (_link, "it is not a directory of"),
]


@pytest.mark.parametrize(("make", "message"), FOREIGN, ids=[message for _, message in FOREIGN])
def test_a_foreign_directory(labs: Labs, make: object, message: str) -> None:
    labs.directory.mkdir(parents=True)
    assert callable(make)
    make(labs.directory / "lab")
    before = labs.left()
    for command in ("up", "down"):
        done = labs.run(command)
        assert done.returncode == 4
        assert message in done.stderr
    assert labs.status()["state"] == "foreign"
    assert labs.run("status").returncode == 2
    assert labs.left() == before
    assert [path.name for path in labs.directory.rglob("*.tex")] == (["thesis.tex"] if make is _foreign else [])


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a directory away")
def test_a_directory_of_another_user(labs: Labs) -> None:
    (labs.directory / "lab").mkdir(parents=True, mode=0o700)
    os.chown(labs.directory / "lab", 65534, 65534)
    assert "it is not a directory of this user" in labs.run("up").stderr


def test_a_place_for_state_that_cannot_be_written(labs: Labs) -> None:
    (labs.cwd / "state").write_text("a file")
    for command in ("up", "status"):
        done = labs.run(command)
        assert done.returncode == 4
        assert "Not a directory" in done.stderr
        assert "XDG_STATE_HOME" in done.stderr


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_a_full_disk(labs: Labs, blocks: int) -> None:
    """A file of at most so many KiB: for the state, the lab's own files, the inventory."""
    command = shlex.join([sys.executable, "-m", "chaos", "lab", "up"])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f {blocks}; exec {command}"],
        cwd=labs.cwd, env=environment(labs.cwd), capture_output=True, text=True, timeout=WALL, check=False,
    )  # fmt: skip
    assert done.returncode in (2, 4), done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert labs.left() == []


@pytest.mark.parametrize(("streams", "code"), [("2>/dev/full", 0), (">/dev/full", 2), (">/dev/full 2>/dev/full", 2)])
def test_output_that_cannot_be_written(labs: Labs, streams: str, code: int) -> None:
    """A lab is removed if its connection data cannot be printed."""
    command = f"exec {shlex.join([sys.executable, '-m', 'chaos', 'lab', 'up'])} {streams}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=labs.cwd, env=environment(labs.cwd), capture_output=True, text=True, timeout=WALL, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert len(labs.processes()) == (code == 0)
    assert labs.run("down").returncode == 0
    assert labs.left() == []


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.smoke), (signal.SIGTERM, 143)]
)
@pytest.mark.parametrize("moment", ["starting the lab", "objects applied"])
def test_interrupted_while_it_starts(labs: Labs, moment: str, number: signal.Signals, code: int) -> None:
    workload = EXPERIMENTS / "workloads" / "web-db-tiers.yaml"
    up = start(
        "lab", "up", "--nodes", "1", "--workload", workload, cwd=labs.cwd
    )  # the workload needs more than one node
    wait_for(up, moment)
    up.send_signal(number)
    output, _ = up.communicate(timeout=WALL)
    assert (up.returncode, output) == (code, "interrupted\n")
    assert labs.left() == []


def test_killed_while_it_starts(labs: Labs) -> None:
    """Without its parent the lab would end; down does not wait for that."""
    workload = EXPERIMENTS / "workloads" / "web-db-tiers.yaml"
    up = start("lab", "up", "--nodes", "1", "--workload", workload, cwd=labs.cwd)
    wait_for(up, "objects applied")
    up.kill()
    up.communicate(timeout=WALL)
    assert labs.status()["state"] == "starting"
    assert labs.run("up").returncode == 4
    assert labs.run("down").returncode == 0
    assert labs.left() == []


def test_down_while_it_starts(labs: Labs) -> None:
    workload = EXPERIMENTS / "workloads" / "web-db-tiers.yaml"
    up = start("lab", "up", "--nodes", "1", "--workload", workload, cwd=labs.cwd)
    wait_for(up, "objects applied")
    assert labs.run("down").returncode == 0
    output, _ = up.communicate(timeout=WALL)
    assert up.returncode == 2
    assert output.startswith("error: the lab ended before it was ready: stopped")
    assert labs.left() == []


FOREGROUND = ("lab", "up", "--foreground", "--out", "copy.json")
ENDS = [
    ("SIGINT", 0, ""),
    ("SIGTERM", 0, ""),
    ("down", 0, "the lab was stopped"),
    ("kill", 2, "the lab has ended: killed"),
]


@pytest.mark.parametrize(("how", "code", "message"), ENDS, ids=[how for how, _, _ in ENDS])
def test_the_ends_of_one_in_the_foreground(labs: Labs, how: str, code: int, message: str) -> None:
    up = start(*FOREGROUND, cwd=labs.cwd)
    wait_for(up, "press Ctrl-C")
    lab = labs.status()
    assert lab["state"] == "running"
    if how == "down":
        assert labs.run("down").returncode == 0
    elif how == "kill":
        os.kill(lab["pid"], signal.SIGKILL)
    else:
        up.send_signal(getattr(signal, how))
    output, _ = up.communicate(timeout=WALL)
    assert up.returncode == code, output
    assert message in output
    assert labs.left() == []
    assert not (labs.cwd / "copy.json").exists()


def test_one_in_the_foreground_whose_owner_is_killed_can_still_be_used_and_ended(labs: Labs) -> None:
    up = start(*FOREGROUND, cwd=labs.cwd)
    wait_for(up, "press Ctrl-C")
    up.kill()
    up.communicate(timeout=WALL)
    assert get(labs.status(), "/version")
    assert labs.run("down").returncode == 0
    assert labs.left() == []
    assert not (labs.cwd / "copy.json").exists()


def test_suspended_and_resumed(labs: Labs) -> None:
    """Its time does not jump; and one that is stopped can be ended."""
    lab = labs.up("--speed", "10")
    source = json.loads(Path(lab["inventory"]).read_text())["cluster"]["timeSource"]
    with closing(SystemClock()) as wall, closing(RemoteClock(**source)) as clock:
        before, begun = clock.now(), wall.now()
        os.kill(lab["pid"], signal.SIGSTOP)
        status = labs.run("status", "--json")  # which waits a while for an answer
        asleep = wall.now() - begun
        os.kill(lab["pid"], signal.SIGCONT)
        passed = clock.now() - before
        assert status.returncode == 2
        assert json.loads(status.stdout)["labs"][0]["state"] == "silent"
        assert passed < asleep * 5  # far from asleep * 10
        assert labs.status() == lab
        os.kill(lab["pid"], signal.SIGSTOP)
    assert labs.run("down").returncode == 0
    assert labs.left() == []


def test_a_lab_whose_directory_is_removed_ends(labs: Labs) -> None:
    labs.up()
    (labs.directory / "lab").rename(labs.cwd / "away")
    until(lambda: labs.processes() == [])
    assert labs.run("status").stdout.startswith("no labs")


@pytest.mark.nightly
def test_nothing_lingers_after_commands_that_start_a_lab_for_themselves(labs: Labs) -> None:
    (labs.cwd / "tmp").mkdir()
    own = environment(labs.cwd) | {"TMPDIR": str(labs.cwd / "tmp")}
    for command in (["demo"], ["plan", str(EXPERIMENTS / "graceful-poweroff.yaml"), "-i", str(LAB)]):
        done = subprocess.run(
            [sys.executable, "-m", "chaos", *command],
            cwd=labs.cwd, env=own, capture_output=True, text=True, timeout=WALL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert list((labs.cwd / "tmp").glob("nodefall-lab-*")) == []
    for path in labs.cwd.glob("reports/*/*/run.json"):
        assert not Path(f"/proc/{json.loads(path.read_text())['lab_pid']}").exists()
    assert not (labs.cwd / "state").exists()
    assert nodefall("undo", "--list", cwd=labs.cwd).returncode == 0

"""A run that was killed after a cordon: whichever of its records are lost, the next run refuses, and its hint works."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaos.core.clock.remote import RemoteClock
from chaos.core.node_mark import PREFIX
from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import WALL, lab, nodefall, start, wait_for, write_experiment

pytestmark = pytest.mark.lab
NODE = "worker-2"


def experiment(directory: Path, *steps: dict[str, Any]) -> Path:
    spec = {
        "title": "marks",
        "targets": {"victim": {"nodes": [NODE]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": [_with_target(step) for step in steps],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": {"for": "60s"}}],
        "recovery": {"within": "3m"},
    }
    return write_experiment(directory / "marks.yaml", spec)


def _with_target(step: dict[str, Any]) -> dict[str, Any]:
    """The step on the victim, unless its target is None."""
    return {key: value for key, value in ({"target": "victim"} | step).items() if value is not None}


CORDON = {"name": "cordon", "action": "cordon"}


@dataclass(frozen=True)
class Killed:
    """A lab, and a run on it that was killed after its step."""

    cwd: Path
    inventory: Path
    kubectl: Kubectl
    experiment: Path
    directory: Path
    run: str

    def node(self) -> dict[str, Any]:
        node: dict[str, Any] = self.kubectl.json("get", "node", NODE)
        return node

    def node_without_taints(self) -> dict[str, Any]:
        """Controllers remove theirs a moment after their cause is gone; the lab's time moves for who sleeps in it."""
        source = json.loads(self.inventory.read_text())["cluster"]["timeSource"]
        clock = RemoteClock(source["address"], source["port"])
        with clock.participant():
            end = clock.now() + 60
            while "taints" in (node := self.node())["spec"]:
                assert clock.now() < end, node["spec"]
                clock.sleep(0.2)
        return node

    def marks(self) -> dict[str, str]:
        annotations = self.node()["metadata"].get("annotations") or {}
        return {key: value for key, value in annotations.items() if key.startswith(PREFIX)}

    def damage_journal(self) -> None:
        (self.directory / "journal.jsonl").write_bytes(b'{"intent": 7}\n')

    def lose_directory(self) -> None:
        shutil.rmtree(self.directory)

    def lose_copy(self) -> None:
        self.kubectl("delete", "configmap", "-n", "kube-system", f"nodefall-run-{self.run}")

    def lose_mark(self) -> None:
        self.kubectl("annotate", "node", NODE, *(f"{key}-" for key in self.marks()))

    def refusal(self, command: str = "run") -> tuple[str, str]:
        """Message and hint of the next run, which must be refused."""
        options = ("--json",) if command == "run" else ()
        done = nodefall(command, self.experiment, "-i", self.inventory, *options, cwd=self.cwd)
        assert done.returncode == 4, done.stderr
        if not options:
            return done.stderr, ""
        error = json.loads(done.stdout)["error"]
        return error["message"], error["hint"]

    def follow_undo(self, hint: str) -> None:
        """Run the ``nodefall undo`` of a hint."""
        found = re.search(r"run nodefall (undo [^;]+)", hint)
        assert found, hint
        arguments = shlex.split(found[1].replace("FILE", shlex.quote(str(self.inventory))))
        done = nodefall(*arguments, "--yes", cwd=self.cwd)
        assert done.returncode == 0, done.stderr

    def follow_kubectl(self, hint: str) -> None:
        """Run the kubectl commands of a hint."""
        commands = re.findall(r"kubectl ([^;]+)", hint)
        assert commands, hint
        for command in commands:
            self.kubectl(*shlex.split(command))

    def assert_restored(self) -> None:
        assert "unschedulable" not in self.node()["spec"]
        assert self.marks() == {}

    def assert_next_run_starts(self) -> None:
        done = nodefall("run", self.experiment, "-i", self.inventory, "--plain", cwd=self.cwd)
        assert done.returncode in (0, 2), done.stderr  # 2: on a busy machine it is inconclusive
        assert "phase: roll back" in done.stderr
        self.assert_restored()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Kubectl]]:
    folder = tmp_path_factory.mktemp("lab")
    with lab(folder) as inventory:
        yield inventory, Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], folder)


@pytest.fixture
def killed(tmp_path: Path, cluster: tuple[Path, Kubectl]) -> Killed:
    inventory, kubectl = cluster
    path = experiment(tmp_path, CORDON)
    run = start("run", path, "-i", inventory, "--plain", cwd=tmp_path)
    wait_for(run, "proven: ")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    (found,) = tmp_path.glob("reports/*/*/run.json")
    made = Killed(tmp_path, inventory, kubectl, path, found.parent, json.loads(found.read_text())["run"])
    assert made.node()["spec"]["unschedulable"]
    (mark,) = made.marks().values()
    assert json.loads(mark) == {"run": made.run, "step": "cordon", "cordoned": False}
    return made


def test_with_the_journal_alone(killed: Killed) -> None:
    killed.lose_copy()
    killed.lose_mark()
    message, hint = killed.refusal()
    assert message == f"run {killed.run} has a pending undo: cordon on {NODE}"
    assert message in killed.refusal("plan")[0]
    killed.follow_undo(hint)
    killed.assert_next_run_starts()


@pytest.mark.nightly
def test_with_the_copy_in_the_cluster_alone(killed: Killed) -> None:
    killed.lose_directory()
    killed.lose_mark()
    message, hint = killed.refusal()
    assert message.startswith(f"run {killed.run} has a pending undo: cordon on {NODE} (by ")
    killed.follow_undo(hint)
    killed.assert_next_run_starts()


@pytest.mark.nightly
def test_with_the_mark_alone(killed: Killed) -> None:
    killed.lose_directory()
    killed.lose_copy()
    message, hint = killed.refusal()
    assert message == f"run {killed.run} has a pending undo: cordon on {NODE}, as an annotation of the Node shows"
    assert message in killed.refusal("plan")[0]
    diagnosed = nodefall("doctor", killed.experiment, "-i", killed.inventory, "--json", cwd=killed.cwd)
    assert message in [finding["message"] for finding in json.loads(diagnosed.stdout)["findings"]]
    killed.follow_kubectl(hint)
    killed.assert_next_run_starts()


@pytest.mark.nightly
def test_with_a_damaged_journal_and_no_copy(killed: Killed) -> None:
    killed.lose_copy()
    killed.damage_journal()
    message, hint = killed.refusal()
    assert f"run {killed.run} has a pending undo: cordon on {NODE}, as an annotation of the Node shows" in message
    assert "journal.jsonl:1: the journal is damaged" in message
    killed.follow_undo(hint)
    killed.assert_next_run_starts()


@pytest.mark.nightly
def test_with_a_damaged_journal_and_neither_copy_nor_plan(killed: Killed) -> None:
    """Only the Node still shows what is to be undone."""
    killed.lose_copy()
    killed.damage_journal()
    (killed.directory / "plan.json").unlink()
    _, hint = killed.refusal()
    assert nodefall("undo", killed.directory, cwd=killed.cwd).returncode != 0
    killed.follow_kubectl(hint)
    killed.assert_restored()
    message, hint = killed.refusal()  # the journal may have had more than the Node shows
    assert message.startswith(f"run {killed.run} has a pending undo: unknown: ")
    assert hint.endswith(f"then move {killed.directory.relative_to(killed.cwd)} out of reports")
    killed.directory.rename(killed.cwd / "away")
    killed.assert_next_run_starts()


def test_with_a_damaged_journal_and_the_copy(killed: Killed) -> None:
    killed.damage_journal()
    killed.lose_mark()
    message, hint = killed.refusal()
    assert f"run {killed.run} has a pending undo: cordon on {NODE}: " in message
    killed.follow_undo(hint)
    killed.assert_next_run_starts()


@pytest.mark.nightly
def test_with_a_journal_that_says_undone_and_the_copy(killed: Killed) -> None:
    """``undo RUN`` would read that journal, and find nothing to undo."""
    (killed.directory / "journal.jsonl").write_bytes(b"")
    message, hint = killed.refusal()
    assert f"run {killed.run} has a pending undo: cordon on {NODE} (by " in message
    killed.follow_undo(hint)
    killed.assert_next_run_starts()


@pytest.mark.nightly
@pytest.mark.parametrize("damage", ["half", "lost"])
def test_with_a_damaged_run_json(killed: Killed, damage: str) -> None:
    """The plan names the run, so an inventory is all that is missing."""
    info = killed.directory / "run.json"
    info.write_bytes(info.read_bytes()[:99])
    if damage == "lost":
        info.unlink()
    killed.lose_copy()
    without = nodefall("undo", killed.directory, cwd=killed.cwd)
    assert without.returncode == 3, without.stderr
    assert "hint: add --inventory FILE" in without.stderr
    message, hint = killed.refusal()
    assert f"an unknown run has a pending undo: cordon on {NODE}; " in message
    killed.follow_undo(hint)
    killed.assert_next_run_starts()


def test_marks_of_other_actions(tmp_path: Path, cluster: tuple[Path, Kubectl]) -> None:
    """Every command that a hint names works."""
    inventory, kubectl = cluster
    steps: list[dict[str, Any]] = [
        {"name": "drain", "action": "drain", "with": {"ignore-daemonsets": True, "selector": "app=none"}},
        {"name": "taint", "action": "taint", "with": {"key": "example.com/k", "value": "v", "effect": "NoSchedule"}},
        {"name": "network", "action": "network-unavailable"},
        {"name": "invent", "action": "create-node", "target": None},
    ]
    path = experiment(tmp_path, *steps)
    run = start("run", path, "-i", inventory, "--plain", cwd=tmp_path)
    wait_for(run, "step invent: proven: ")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    (found,) = tmp_path.glob("reports/*/*/run.json")
    killed = Killed(tmp_path, inventory, kubectl, path, found.parent, json.loads(found.read_text())["run"])
    assert sorted(json.loads(mark)["step"] for mark in killed.marks().values()) == ["drain", "network", "taint"]
    killed.lose_directory()
    killed.lose_copy()
    message, hint = killed.refusal()
    assert message.endswith("(and 1 more)")
    killed.follow_kubectl(hint)
    message, hint = killed.refusal()
    assert "has a pending undo: " in message
    killed.follow_kubectl(hint)
    killed.assert_restored()
    node = killed.node_without_taints()
    assert "NetworkUnavailable" not in [c["type"] for c in node["status"]["conditions"] if c["status"] == "True"]
    assert "nodefall-nowhere" not in kubectl("get", "nodes", "-o", "name")


@pytest.mark.nightly
def test_a_mark_of_what_an_admin_has_undone_is_removed_by_the_next_run(killed: Killed) -> None:
    killed.lose_directory()
    killed.lose_copy()
    killed.kubectl("uncordon", NODE)
    diagnosed = nodefall("doctor", killed.experiment, "-i", killed.inventory, "--json", cwd=killed.cwd)
    found = [f for f in json.loads(diagnosed.stdout)["findings"] if f["check"] == "pending-undo"]
    assert [f["severity"] for f in found] == ["note", "ok"]
    assert len(killed.marks()) == 1
    killed.assert_next_run_starts()


@pytest.mark.nightly
def test_undo_removes_the_mark_of_what_an_admin_has_undone(killed: Killed) -> None:
    killed.kubectl("uncordon", NODE)
    assert nodefall("undo", "last", cwd=killed.cwd).returncode == 0
    killed.assert_restored()

"""Every action on the lab: proven, undone, harmless when undone twice, and the cluster recovers.

Each eighth in every slow run, over the network, and all of them at night. In process those of the bundled experiments
run with these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from chaos.core.recording import ActionRecord
from chaos.core.store.recording import read_recording
from tests.kit.action_rows import LABS, REFUSED_BY_LAB
from tests.kit.contracts import ACTIONS, MANIFESTS, experiment
from tests.kit.processes import lab, nodefall, result_of
from tests.kit.suite import others_nightly

pytestmark = pytest.mark.lab
ACCEPTED = [name for name in ACTIONS if name not in REFUSED_BY_LAB and name not in LABS]


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab(tmp_path_factory.mktemp("lab"), "--workload", MANIFESTS / "there.yaml", machineIdPerBoot=True) as path:
        yield path


@pytest.mark.parametrize("action", others_nightly(ACCEPTED, ACCEPTED[::8]))
def test_an_action_is_proven_and_undone(tmp_path: Path, inventory: Path, action: str) -> None:
    prove_and_undo(tmp_path, inventory, action)


@pytest.mark.parametrize("action", LABS)
def test_an_action_with_a_lab_of_its_own_is_proven_and_undone(tmp_path: Path, action: str) -> None:
    with lab(tmp_path, "--workload", MANIFESTS / "there.yaml", **LABS[action]) as path:
        prove_and_undo(tmp_path, path, action)


def prove_and_undo(tmp_path: Path, inventory: Path, action: str) -> None:
    done = nodefall("run", experiment(tmp_path, action), "-i", inventory, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(done)
    step = result["steps"][-1]
    assert step["shown"] == "proven"
    assert not step["weak"], step["because"]
    assert all(undo["proven"] for undo in result["undo"])
    again = nodefall("undo", "last", cwd=tmp_path)
    assert again.returncode == 0
    assert ": undo:" not in again.stderr
    assert "no pending undo" in again.stderr
    # The steady state holds again at the end of the run, and so for the next action's run, in any order.
    assert {v["status"] for v in result["recovery"]} == {"held"}


def test_a_budget_refuses_a_drain_until_the_timeout(tmp_path: Path, inventory: Path) -> None:
    """Every refusal is in the recording, with time and message; undo restores cordon and budget."""
    file = experiment(tmp_path, "drain")
    document = json.loads(file.read_text())
    budget = {"namespace": "default", "name": "web", "max-unavailable": 0}
    wide = {"kind": "deployment", "namespace": "default", "name": "web", "replicas": 9}  # one on every node
    document["spec"]["method"] = [
        {"name": "more", "action": "scale", "with": wide},
        {"name": "tighten", "action": "patch-budget", "with": budget, "after": "more + 10s"},
        {**document["spec"]["method"][0], "after": "tighten + 2s"},
    ]
    document["spec"]["method"][2]["with"]["timeout"] = "12s"
    file.write_text(json.dumps(document))
    done = nodefall("run", file, "-i", inventory, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(done)
    assert "disruption budget web needs 9 healthy pods and has 9" in result["steps"][2]["because"]
    assert [undo["proven"] for undo in result["undo"]] == [True] * 3
    (recorded,) = (tmp_path / "reports").rglob("recording.jsonl.gz")
    returned = next(
        entry.object
        for entry in read_recording(recorded)
        if entry.type == "drain" and b'"returned"' in bytes(entry.object)
    )
    record = msgspec.json.decode(returned, type=ActionRecord)
    assert record.exit == 1
    refused = [pod for pod in record.evidence["pods"] if pod["refusals"]]
    assert refused
    for pod in refused:
        times = [refusal["t"] for refusal in pod["refusals"]]
        assert [round(later - times[0]) for later in times] == [0, 5, 10]
        assert not pod["gone"]


@pytest.mark.parametrize("action", REFUSED_BY_LAB)
def test_an_impossible_action_is_refused(tmp_path: Path, inventory: Path, action: str) -> None:
    done = nodefall("run", experiment(tmp_path, action), "-i", inventory, cwd=tmp_path)
    assert done.returncode == 4
    assert REFUSED_BY_LAB[action] in done.stderr
    assert not list(tmp_path.glob("reports/*/*/plan.json"))

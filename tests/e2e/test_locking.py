"""One run at a time on a cluster, from any machine.

The lock of a living run is never taken; a run that loses it anyway stops, undoes and is inconclusive.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster.client import connect
from chaos.core.command import MERGE_PATCH
from tests.kit.elsewhere import nodefall_elsewhere
from tests.kit.processes import WALL, environment, lab, nodefall, start, wait_for, write_experiment
from tests.kit.suite import others_nightly

pytestmark = pytest.mark.lab


def taken_over(directory: Path) -> Path:
    """Two steps; the second is due after another machine has taken over."""
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {
        "title": "two steps",
        "targets": {"victim": {"nodes": ["worker-2"]}},
        "steadyState": [ready],
        "method": [
            {"name": "first", "action": "kubelet-stop", "target": "victim"},
            {"name": "second", "action": "cordon", "target": "victim", "after": "first + 20s"},
        ],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": {"for": "10m"}}],
        "recovery": {"within": "3m"},
    }
    return write_experiment(directory / "twice.yaml", spec)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_run_that_sleeps_through_its_lock_is_undone_by_another_machine_and_does_nothing_more(
    tmp_path: Path,
) -> None:
    twice = taken_over(tmp_path)
    with lab(tmp_path, "--speed", "1") as inventory:
        run = start("run", twice, "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "proven: ")

        # Another machine shares neither the lock file nor the reports.
        here = ("-i", inventory, "--reports", tmp_path / "other")
        second = nodefall_elsewhere("run", twice, *here, cwd=tmp_path)
        assert second.returncode == 4, second.stderr
        assert f"/{run.pid}-" in second.stderr
        assert "cluster in use by " in second.stderr
        assert "(run twice-" in second.stderr
        shown = nodefall("status", "-i", inventory, "--json", cwd=tmp_path)
        assert shown.returncode == 2, shown.stderr
        status = json.loads(shown.stdout)
        assert [(row["step"], row["node"]) for row in status["pendingUndo"]] == [("first", "worker-2")]
        name = status["lock"]["run"]

        os.kill(run.pid, signal.SIGSTOP)
        undone = nodefall_elsewhere("undo", name, *here, "--yes", cwd=tmp_path)
        assert undone.returncode == 0, undone.stderr
        assert "waiting up to 30 s for the lock of" in undone.stderr
        assert nodefall("status", "-i", inventory, cwd=tmp_path).stdout == "no run is active on this cluster\n"
        again = nodefall_elsewhere("undo", name, *here, cwd=tmp_path)
        assert again.returncode == 0
        assert "undo:" not in again.stderr

        os.kill(run.pid, signal.SIGCONT)
        output, _ = run.communicate(timeout=WALL)
        assert "the cluster's lock was deleted" in output
        assert "step second" not in output
        assert run.returncode == 2, output
        assert nodefall("undo", "--list", "-i", inventory, cwd=tmp_path).returncode == 0


def test_a_run_is_stopped_from_elsewhere(tmp_path: Path) -> None:
    with lab(tmp_path) as inventory:
        assert nodefall("status", "-i", inventory, cwd=tmp_path).returncode == 0
        run = start("run", taken_over(tmp_path), "-i", inventory, "--plain", cwd=tmp_path)
        wait_for(run, "proven: ")
        stopped = nodefall("abort", "-i", inventory, "--reason", "pager went off", "--json", cwd=tmp_path)
        assert stopped.returncode == 0, stopped.stderr
        assert json.loads(stopped.stdout)["pendingUndo"] == []
        output, _ = run.communicate(timeout=WALL)
        assert "asked to stop: pager went off" in output
        assert "undone: the kubelet is active" in output
        assert run.returncode == 2
        idle = nodefall("abort", "-i", inventory, cwd=tmp_path)
        assert (idle.returncode, idle.stdout) == (0, "no run is active on this cluster\n")


LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/nodefall"
# The phase, and what the run prints in it.
PHASES = {
    "arm": "phase: arm",
    "steady state": "phase: steady state",
    "inject": "step first on",
    "observe": "phase: observe",
    "roll back": "phase: roll back",
    "recovery": "phase: recovery",
}


def experiment(directory: Path, observe: str = "1m") -> Path:
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {
        "title": "two steps",
        "targets": {"victim": {"nodes": ["worker-2"]}},
        "steadyState": [ready],
        "method": [
            {"name": "first", "action": "kubelet-stop", "target": "victim", "after": "20s"},
            {"name": "second", "action": "cordon", "target": "victim", "after": "first + 30s"},
        ],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": {"for": observe}}],
        "recovery": {"within": "3m"},
    }
    return write_experiment(directory / "twice.yaml", spec)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab that all tests share: each restores it."""
    directory = tmp_path_factory.mktemp("lab")
    with lab(directory, speed=16) as path:
        lease(path)  # the client is slow to import
        yield path


def by_name(inventory: Path, directory: Path) -> Path:
    """The same cluster by another name of its server."""
    document = json.loads(inventory.read_text())
    kubeconfig = json.loads(Path(document["cluster"]["kubeconfig"]).read_text())
    cluster = kubeconfig["clusters"][0]["cluster"]
    assert "127.0.0.1" in cluster["server"]
    cluster["server"] = cluster["server"].replace("127.0.0.1", "localhost")
    document["cluster"]["kubeconfig"] = str(directory / "localhost.kubeconfig")
    for path, content in (("localhost.kubeconfig", kubeconfig), ("localhost.json", document)):
        (directory / path).write_text(json.dumps(content))
        (directory / path).chmod(0o600)
    return directory / "localhost.json"


def lease(inventory: Path, method: str = "GET", **spec: Any) -> dict[str, Any] | None:
    """Read, delete or change the Lease by hand."""
    client = connect(json.loads(inventory.read_text())["cluster"]["kubeconfig"])
    try:
        body = {"spec": spec, "metadata": {"annotations": {"nodefall.dev/process": None}}} if spec else None
        response = client.request(method, LEASE, body=body, content_type=MERGE_PATCH if spec else "application/json")
        return None if response.status == 404 else dict(json.loads(response.body))
    finally:
        client.close()


def steal(inventory: Path) -> None:
    """Another holder, which renews nothing; its lock lasts 2 s."""
    assert lease(inventory, "PATCH", holderIdentity="eve@elsewhere/1", leaseDurationSeconds=2, leaseTransitions=9)


def finish(run: subprocess.Popen[str]) -> str:
    output, _ = run.communicate(timeout=WALL)
    return output


def begin(inventory: Path, cwd: Path, text: str, observe: str = "1m") -> tuple[subprocess.Popen[str], list[str]]:
    run = start("run", experiment(cwd, observe), "-i", inventory, "--plain", "--seed", "1", cwd=cwd)
    return run, wait_for(run, text)


def undone(inventory: Path, cwd: Path) -> bool:
    """Nothing is pending, here and in the cluster."""
    status = nodefall("status", "-i", inventory, "--json", cwd=cwd)
    pending = json.loads(status.stdout)["pendingUndo"]
    return not pending and nodefall("undo", "--list", cwd=cwd).returncode == 0


@pytest.mark.nightly
def test_the_lock_of_a_living_run_is_not_taken(inventory: Path, tmp_path: Path) -> None:
    """From another name of the server, another TMPDIR, other lock files and another PID namespace."""
    other = tmp_path / "other"
    other.mkdir()
    named = by_name(inventory, other)
    run, _ = begin(inventory, tmp_path, "step first on", observe="5m")
    command = [sys.executable, "-m", "chaos", "run", str(experiment(other)), "-i", str(named)]
    variables = environment(other) | {"TMPDIR": str(other)}
    here = subprocess.run(command, cwd=other, env=variables, capture_output=True, text=True, timeout=WALL, check=False)
    assert here.returncode == 4, here.stderr
    assert f"cluster in use by another nodefall (process {run.pid})" in here.stderr
    for pid_namespace in (False, True):
        second = nodefall_elsewhere("run", experiment(other), "-i", named, cwd=other, pid_namespace=pid_namespace)
        assert second.returncode == 4, second.stderr
        assert f"/{run.pid}-" in second.stderr
    output = finish(run)
    assert run.returncode == 0, output
    assert "lock was" not in output
    assert undone(inventory, tmp_path)


@pytest.mark.parametrize("is_elsewhere", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_lock_of_a_killed_run_is_taken_at_once_where_its_end_is_proven(
    inventory: Path, tmp_path: Path, is_elsewhere: bool
) -> None:
    """Elsewhere the process IDs are the same, but the lock files are not, as in a clone of the machine."""
    run, _ = begin(inventory, tmp_path, "proven: ")
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=WALL)
    begun = time.monotonic()
    done = (nodefall_elsewhere if is_elsewhere else nodefall)("undo", "last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("waiting up to 30 s for the lock of" in done.stderr) is is_elsewhere
    assert (time.monotonic() - begun > 30) is is_elsewhere
    assert undone(inventory, tmp_path)


@pytest.mark.smoke
@pytest.mark.parametrize("phase", others_nightly(PHASES, ("inject",)))
def test_a_run_whose_lock_is_stolen_undoes_and_is_inconclusive(inventory: Path, tmp_path: Path, phase: str) -> None:
    run, lines = begin(inventory, tmp_path, PHASES[phase])
    run.send_signal(signal.SIGSTOP)  # or it would be over before the Lease is written
    steal(inventory)
    run.send_signal(signal.SIGCONT)
    output = "".join(lines) + finish(run)
    assert run.returncode == 2, output
    assert "the cluster's lock was taken by eve@elsewhere/1" in output
    assert "held" not in output.splitlines()[-1]
    if phase in {"arm", "steady state"}:
        assert "step first on" not in output
    elif phase == "inject":
        assert "step second on" not in output
    assert undone(inventory, tmp_path)
    lease(inventory, "DELETE")
    (result,) = tmp_path.glob("reports/*/*/result.json")
    found = json.loads(result.read_text())
    assert found["status"] == "inconclusive"
    assert "taken by eve" in found["headline"]
    recording = result.with_name("recording.jsonl.gz")
    judged = nodefall("judge", recording, result.with_name("experiment.yaml"), "--json", cwd=tmp_path)
    assert judged.returncode == 2, judged.stdout
    assert "held" not in [verdict["status"] for verdict in json.loads(judged.stdout)["hypothesis"]]


def test_a_run_whose_lock_is_deleted_undoes_at_once(inventory: Path, tmp_path: Path) -> None:
    run, lines = begin(inventory, tmp_path, "proven: ")
    lease(inventory, "DELETE")
    output = "".join(lines) + finish(run)
    assert run.returncode == 2, output
    assert "the cluster's lock was deleted" in output
    assert "the lock is held again" in output
    assert "step second on" not in output
    assert undone(inventory, tmp_path)


@pytest.mark.nightly
def test_a_run_whose_lock_another_process_renews_undoes_nothing(inventory: Path, tmp_path: Path) -> None:
    """The other may be undoing just that. Ended here after 3 s instead of 5 min; the undo is finished later."""
    patched = tmp_path / "patched.py"
    patched.write_text(
        "import sys, chaos.cluster.lease_lock as lock\nlock.REGAIN_TIMEOUT = 3.0\n"
        "from chaos.cli import app\napp.run()\n"
    )
    command = [sys.executable, str(patched), "run", str(experiment(tmp_path)), "-i", str(inventory), "--plain"]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = wait_for(run, "proven: ")
    assert lease(inventory, "PATCH", holderIdentity="eve@elsewhere/1", leaseDurationSeconds=60, leaseTransitions=9)
    output = "".join(lines) + finish(run)
    assert run.returncode == 3, output
    assert "undo:" not in output
    assert "pending" in output
    lease(inventory, "DELETE")
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0
    assert undone(inventory, tmp_path)

"""The journal in the cluster is anybody's text: what of it is undone, by the real process, after a run was killed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster.client import connect
from chaos.cluster.replica import Signer, configmap_name
from tests.kit.processes import lab, nodefall, start, wait_for, write_experiment
from tests.kit.suite import others_nightly

pytestmark = pytest.mark.lab
MAPS = "/api/v1/namespaces/kube-system/configmaps"
KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab that all tests share: each restores it."""
    directory = tmp_path_factory.mktemp("lab")
    with lab(directory, speed=16) as path:
        api(path, "GET", MAPS)  # the client is slow to import
        yield path


def api(inventory: Path, method: str, path: str, body: Any = None) -> dict[str, Any]:
    client = connect(json.loads(inventory.read_text())["cluster"]["kubeconfig"])
    try:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return dict(json.loads(client.request(method, path, body=body, content_type=kind).body))
    finally:
        client.close()


def experiment(directory: Path, action: str = "cordon") -> Path:
    spec = {
        "title": "one step",
        "targets": {"victim": {"nodes": ["worker-2"]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": [{"name": "fault", "action": action, "target": "victim"}],
        "hypothesis": [{"assert": "nodes-ready", "with": {"not-ready-at-most": 2}, "always": {"for": "10m"}}],
        "recovery": {"within": "3m"},
    }
    return write_experiment(directory / "one.yaml", spec)


def signed(inventory: Path, directory: Path) -> Path:
    """The same inventory with a key."""
    key = directory / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    document = json.loads(inventory.read_text())
    document["cluster"]["journalKey"] = {"file": str(key)}
    path = directory / "signed.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def killed(inventory: Path, cwd: Path, action: str = "cordon") -> str:
    """The ID of a run that was killed after its fault."""
    run = start("run", experiment(cwd, action), "-i", inventory, "--plain", cwd=cwd)
    wait_for(run, "proven: ")
    run.kill()
    run.communicate()
    (item,) = maps(inventory)
    return str(item["metadata"]["name"]).removeprefix("nodefall-run-")


def maps(inventory: Path) -> list[dict[str, Any]]:
    return [m for m in api(inventory, "GET", MAPS)["items"] if m["metadata"]["name"].startswith("nodefall-run-")]


def rewrite(inventory: Path, change: Callable[[dict[str, str]], dict[str, str | None]]) -> None:
    (item,) = maps(inventory)
    api(inventory, "PATCH", f"{MAPS}/{item['metadata']['name']}", {"data": change(item["data"])})


def cordoned(inventory: Path, node: str = "worker-2") -> bool:
    return bool(api(inventory, "GET", f"/api/v1/nodes/{node}")["spec"].get("unschedulable"))


def elsewhere(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Undo with reports of another directory: it knows the run from the cluster only."""
    return nodefall("undo", *arguments, "--reports", cwd / "elsewhere", cwd=cwd)


@pytest.mark.nightly
def test_an_unsigned_journal_is_printed_and_confirmed(inventory: Path, tmp_path: Path) -> None:
    run = killed(inventory, tmp_path)
    unconfirmed = elsewhere(run, "-i", inventory, cwd=tmp_path)
    assert unconfirmed.returncode == 4, unconfirmed.stderr
    assert "not signed with a key that is here" in unconfirmed.stderr
    assert re.search(r' {4}PATCH /api/v1/nodes/worker-2 .*"spec": {"unschedulable": null}', unconfirmed.stderr)
    assert "pass --yes" in unconfirmed.stderr
    assert cordoned(inventory)
    sent = elsewhere(run, "-i", inventory, "--yes", "--json", cwd=tmp_path)
    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["rejected"] == []
    assert not cordoned(inventory)
    assert not maps(inventory)
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0  # the machine of the run: nothing is left to undo


@pytest.mark.nightly
def test_a_signed_journal_needs_no_confirmation(inventory: Path, tmp_path: Path) -> None:
    named = signed(inventory, tmp_path)
    run = killed(named, tmp_path)
    done = elsewhere(run, "-i", named, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not cordoned(inventory)


def test_a_journal_that_somebody_changed_is_not_undone(inventory: Path, tmp_path: Path) -> None:
    named = signed(inventory, tmp_path)
    run = killed(named, tmp_path)
    rewrite(inventory, lambda data: {"entries.json": data["entries.json"].replace("worker-2", "worker-1")})
    for arguments in ((), ("--yes",)):
        done = elsewhere(run, "-i", named, *arguments, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "is not signed with cluster.journalKey" in done.stderr
    assert cordoned(inventory)
    assert maps(inventory)
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0  # its own journal is the valid one
    assert not cordoned(inventory)
    assert not maps(inventory)


@pytest.mark.nightly
def test_a_signed_journal_of_yesterday_is_confirmed(inventory: Path, tmp_path: Path) -> None:
    """It may have been undone long ago, and put back."""
    named = signed(inventory, tmp_path)
    run = killed(named, tmp_path)
    uid = str(api(inventory, "GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"])

    def age(data: dict[str, str]) -> dict[str, str | None]:
        identity = json.loads(data["run.json"])
        earlier = {"run.json": json.dumps(identity | {"started": identity["started"] - 25 * 3600})}
        return dict(Signer(uid, KEY.encode()).sign(configmap_name(run), data | earlier))

    rewrite(inventory, age)
    unconfirmed = elsewhere(run, "-i", named, cwd=tmp_path)
    assert unconfirmed.returncode == 4, unconfirmed.stderr
    assert "pass --yes" in unconfirmed.stderr
    assert cordoned(inventory)
    assert elsewhere(run, "-i", named, "--yes", cwd=tmp_path).returncode == 0
    assert not cordoned(inventory)


def test_commands_from_the_cluster_are_never_sent(inventory: Path, tmp_path: Path) -> None:
    """As 0.1.0 published them; also for nodes that were never planned."""
    run = killed(inventory, tmp_path)

    def poison(data: dict[str, str]) -> dict[str, str | None]:
        step = {"command": {"type": "host", "argv": ["systemctl", "stop", "kubelet.service"]}}
        undo = {"steps": [step], "proof": [{"fact": "kubelet-state", "value": "inactive"}]}
        entry = {"id": 1, "step": "fault", "action": "cordon", "node": "worker-1", "undo": undo, "t": 1.0}
        former = json.loads(data["run.json"]) | {"format": 1}
        return {"run.json": json.dumps(former), "pending.json": json.dumps([entry]), "entries.json": None}

    rewrite(inventory, poison)
    done = elsewhere(run, "-i", inventory, "--yes", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "with commands, which are never sent from a cluster: systemctl stop kubelet.service" in done.stderr
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0
    assert not cordoned(inventory)
    ready = api(inventory, "GET", "/api/v1/nodes/worker-1")["status"]["conditions"]
    assert [c["status"] for c in ready if c["type"] == "Ready"] == ["True"]


@pytest.mark.nightly
def test_only_nodes_of_the_plan_are_undone(inventory: Path, tmp_path: Path) -> None:
    run = killed(inventory, tmp_path)

    def add(data: dict[str, str]) -> dict[str, str | None]:
        (entry,) = json.loads(data["entries.json"])
        moved = json.dumps([entry, entry | {"node": "worker-1", "state": {"node": "worker-1", "cordoned": True}}])
        return {"entries.json": moved}

    rewrite(inventory, add)
    done = elsewhere(run, "-i", inventory, "--yes", "--json", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    rejected = json.loads(done.stdout)["rejected"]
    assert [(r["node"], r["because"]) for r in rejected] == [("worker-1", "worker-1 is not a node of the run's plan")]
    assert not cordoned(inventory)
    assert not cordoned(inventory, "worker-1")
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0
    assert not maps(inventory)


DAMAGE: dict[str, bytes] = {"half a line": b'{"intent":{"id":1,"st\n', "garbage": b"\xff\x00\xfe garbage\n"}

DAMAGED = [f"{damage}, copy {copy}" for damage in DAMAGE for copy in ("there", "deleted", "unreadable")]


@pytest.mark.parametrize("case", others_nightly(DAMAGED, ("half a line, copy there",)))
def test_a_damaged_journal_is_rebuilt(inventory: Path, tmp_path: Path, case: str) -> None:
    """From the copy, else from the plan: what was planned is undone if it has an effect."""
    damage, _, copy = case.partition(", copy ")
    killed(inventory, tmp_path)
    (journal,) = tmp_path.glob("reports/*/*/journal.jsonl")
    journal.write_bytes(DAMAGE[damage])
    (item,) = maps(inventory)
    if copy == "deleted":
        api(inventory, "DELETE", f"{MAPS}/{item['metadata']['name']}")
    elif copy == "unreadable":
        rewrite(inventory, lambda _: {"run.json": "{"})
    done = nodefall("undo", "last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the journal is damaged or empty, and saved as journal.damaged-1; rebuilt from" in done.stderr
    assert not cordoned(inventory)
    assert not maps(inventory)
    again = nodefall("undo", "last", cwd=tmp_path)
    assert again.returncode == 0
    assert "undone" not in again.stderr


@pytest.mark.nightly
def test_an_empty_journal_is_rebuilt_from_the_copy(inventory: Path, tmp_path: Path) -> None:
    """An empty one alone is a run that died before its first operation."""
    killed(inventory, tmp_path)
    (journal,) = tmp_path.glob("reports/*/*/journal.jsonl")
    journal.write_bytes(b"")
    done = nodefall("undo", "last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not cordoned(inventory)
    assert not maps(inventory)


@pytest.mark.nightly
@pytest.mark.parametrize("plan", ["there", "lost"])
def test_a_journal_that_lost_its_end_is_completed_from_the_copy(inventory: Path, tmp_path: Path, plan: str) -> None:
    """Each of its lines is intact, so only the copy shows that the last operation is missing."""
    path = experiment(tmp_path)
    document = json.loads(path.read_text())
    first = {"name": "first", "action": "taint", "target": "victim", "with": {"key": "x.io/y", "effect": "NoSchedule"}}
    document["spec"]["method"] = [first, document["spec"]["method"][0] | {"after": "first + 2s"}]
    path.write_text(json.dumps(document))
    run = start("run", path, "-i", inventory, "--plain", cwd=tmp_path)
    wait_for(run, "fault on worker-2: proven: ")
    run.kill()
    run.communicate()
    (journal,) = tmp_path.glob("reports/*/*/journal.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert [b'"fault"' in line for line in lines] == [False, False, True]
    journal.write_bytes(b"".join(lines[:2]))
    if plan == "lost":
        (journal.parent / "plan.json").unlink()
        unconfirmed = nodefall("undo", "last", cwd=tmp_path)
        assert unconfirmed.returncode == 3, unconfirmed.stderr
        assert cordoned(inventory)
        assert maps(inventory)
    done = nodefall("undo", "last", *(["--yes"] if plan == "lost" else []), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not cordoned(inventory)
    assert not maps(inventory)


@pytest.mark.nightly
def test_a_damaged_journal_and_a_forged_copy(inventory: Path, tmp_path: Path) -> None:
    """The plan on this machine is the authority: what it does not have is not undone."""
    killed(inventory, tmp_path)
    (journal,) = tmp_path.glob("reports/*/*/journal.jsonl")
    journal.write_bytes(b"{\n")
    rewrite(inventory, lambda data: {"entries.json": data["entries.json"].replace("worker-2", "worker-1")})
    done = nodefall("undo", "last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not cordoned(inventory)
    assert not cordoned(inventory, "worker-1")
    assert not maps(inventory)


def listed(cwd: Path) -> tuple[int, list[str], str]:
    """Exit code, steps and stderr of a list on the machine of the run."""
    done = nodefall("undo", "--list", "--json", cwd=cwd)
    return done.returncode, [row["step"] for row in json.loads(done.stdout)["pendingUndo"]], done.stderr


def test_the_machine_of_a_run_learns_what_was_undone_elsewhere(inventory: Path, tmp_path: Path) -> None:
    """By a list, and by the next run; until then the undo is pending there."""
    run = killed(inventory, tmp_path, "kubelet-stop")
    assert listed(tmp_path)[:2] == (3, ["fault"])
    shutil.copytree(tmp_path / "reports", tmp_path / "another" / "reports")
    assert elsewhere(run, "-i", inventory, "--yes", cwd=tmp_path).returncode == 0
    assert not maps(inventory)
    code, steps, words = listed(tmp_path)
    assert (code, steps) == (0, []), words
    assert f"fault on worker-2 of run {run} was undone on another machine: the kubelet is active" in words
    assert "another machine" not in listed(tmp_path)[2]  # it is in the journal now
    short = experiment(tmp_path, "kubelet-stop").read_text().replace("10m", "1s")
    (tmp_path / "another" / "short.yaml").write_text(short)
    again = nodefall("run", "short.yaml", "-i", inventory, "--plain", cwd=tmp_path / "another")
    assert again.returncode == 0, again.stderr
    assert f"of run {run} was undone on another machine" in again.stderr


def test_a_copy_that_somebody_deleted_proves_no_undo(inventory: Path, tmp_path: Path) -> None:
    """The node shows that its kubelet is still stopped."""
    killed(inventory, tmp_path, "kubelet-stop")
    (item,) = maps(inventory)
    api(inventory, "DELETE", f"{MAPS}/{item['metadata']['name']}")
    assert listed(tmp_path)[:2] == (3, ["fault"])
    refused = nodefall("run", experiment(tmp_path, "kubelet-stop"), "-i", inventory, "--plain", cwd=tmp_path)
    assert refused.returncode == 4, refused.stderr
    assert "pending undo" in refused.stderr
    assert nodefall("undo", "last", cwd=tmp_path).returncode == 0
    assert listed(tmp_path)[:2] == (0, [])


def test_without_its_cluster_an_undo_stays_pending(inventory: Path, tmp_path: Path) -> None:
    run = killed(inventory, tmp_path, "kubelet-stop")
    (file,) = tmp_path.glob("reports/*/*/run.json")
    saved = file.read_bytes()
    assert elsewhere(run, "-i", inventory, "--yes", cwd=tmp_path).returncode == 0
    kubeconfig = json.loads(inventory.read_text())["cluster"]["kubeconfig"]
    file.write_bytes(saved.replace(kubeconfig.encode(), str(tmp_path / "gone").encode()))
    assert listed(tmp_path)[:2] == (3, ["fault"])
    file.write_bytes(saved)
    assert listed(tmp_path)[:2] == (0, [])

"""Gates, abort conditions and receivers of a game day that runs as a process."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gamedays import day_state, faults, left_behind, run_day, start_day, verdicts_of, write_day
from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import WALL, lab, wait_for
from tests.kit.web_server import Answer, Received, web_server

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * WALL)]
KEY = "a key that two sides know"
ALL = ["start", "entry", "violated", "halted", "end"]


def serve(request: Received) -> Answer:
    """Pages of a status site, a Prometheus that talks nonsense, and receivers."""
    if request.path == "/hangs":
        return Answer(hang=True)
    if request.path == "/dead":
        return Answer(500)
    return Answer(200, b"<html>all systems green</html>")


def entry(name: str, **gate: Any) -> dict[str, Any]:
    return {"experiment": f"{name}.yaml", "gates": [{"onFailure": "skip", **gate}]}


def test_gates_that_fail_hang_or_answer_nonsense_let_nothing_begin(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOOK_KEY", KEY)
    with web_server(serve) as server, lab(tmp_path) as inventory:
        document = json.loads(inventory.read_text())
        inventory.write_text(json.dumps(document | {"prometheus": {"url": server.url}}))
        write_day(
            tmp_path,
            ["hangs", "nonsense", "red", "green"],
            entries=[
                entry("hangs", kind="http", url=f"{server.url}/hangs", timeout="1s"),
                entry("nonsense", kind="prometheus", query="up", atLeast=0),
                entry("red", kind="http", url=f"{server.url}/", contains="all systems red"),
                entry("green", kind="http", url=f"{server.url}/", contains="green"),
            ],
            gates=[{"kind": "doctor"}, {"kind": "no-other-run"}],
            notify=[
                {"kind": "webhook", "url": f"{server.url}/hook", "key": {"env": "HOOK_KEY"}, "on": ALL},
                {"kind": "webhook", "url": f"{server.url}/dead"},
                {"kind": "metrics", "directory": "."},
            ],
        )
        done = run_day(inventory, tmp_path, "--json")
        assert done.returncode == 2, done.stderr
        state = json.loads(done.stdout)
        skipped = {"hangs": "skipped", "nonsense": "skipped", "red": "skipped"}
        assert verdicts_of(state) == {**skipped, "green": "held"}, done.stderr
        reasons = {run["key"]["entry"]: run.get("reason", "") for run in state["runs"]}
        assert reasons["hangs"].endswith(": no answer within 1s")
        assert "Prometheus at" in reasons["nonsense"]
        assert "without 'all systems red' in 30 bytes" in reasons["red"]
        assert faults(tmp_path) == {"green": 1}
        assert left_behind(inventory, tmp_path) == []
    check_hook([request for request in server.received if request.path == "/hook"])
    assert done.stderr.count(f"notification to webhook {server.url}/dead failed") == 1
    assert {each["kind"] for each in state["undelivered"]} >= {"day-begins"}
    (written,) = tmp_path.glob("nodefall_days_*_green.prom")
    assert 'verdict="held"} 1.0' in written.read_text()


def check_hook(received: list[Received]) -> None:
    """The day's begin, its one run, and its end, in this order and signed."""
    assert [request.json["event"] for request in received] == ["day-begins", "entry-begins", "entry-ends", "day-ends"]
    assert received[2].json["verdict"] == "held"
    for request in received:
        fields = dict(part.split("=", 1) for part in request.headers["x-nodefall-signature"].split(","))
        signed = f"{fields['t']}.".encode() + request.body
        assert hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest() == fields["v1"]


TAINTED = {"assert": "node-taint", "with": {"node": "all", "key": "pager", "present": False}, "always": True}


@pytest.mark.parametrize(
    ("text", "first"), [("waiting for the gates of one", "pending"), ("step cordon on", "interrupted")]
)
def test_an_abort_condition_ends_the_day_between_runs_and_during_one(tmp_path: Path, text: str, first: str) -> None:
    gate = {"kind": "approval", "by": ["ada"], "onFailure": "wait", "wait": "10h"}
    write_day(tmp_path, ["one", "two"], abort=[TAINTED], gates=[gate] if first == "pending" else [], lasts="10m")
    with lab(tmp_path, speed=10) as inventory:
        process = start_day(inventory, tmp_path)
        wait_for(process, text)
        kubectl = Kubectl(json.loads(inventory.read_text())["cluster"]["kubeconfig"], tmp_path)
        (node, *_) = [each["metadata"]["name"] for each in kubectl.json("get", "nodes")["items"]]
        kubectl("taint", "node", node, "pager=on:NoSchedule")
        output, _ = process.communicate(timeout=WALL)
        assert process.returncode == 2, output
        assert "abort condition node-taint: " in output
        state = day_state(inventory, tmp_path)
        assert (state["status"], verdicts_of(state)["two"]) == ("halted", "pending")
        assert left_behind(inventory, tmp_path) == []
        assert state["halts"][0]["reason"].startswith("abort condition node-taint: ")
        assert faults(tmp_path) == ({} if first == "pending" else {"one": 1})

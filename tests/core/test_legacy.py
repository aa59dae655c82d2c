"""JSON that nodefall 0.1.0 wrote is read: a plan and a result that it stored, an undo, and recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.core.action import FactCheck, FailsafeTimer, ProofStatus, Undo, UndoStep
from chaos.core.command import KubeCommand, PowerCommand, PowerVerb
from chaos.core.decode import decode
from chaos.core.legacy import decode_plan, decode_result, plan_document, upgrade_undo
from chaos.core.recording import OVERRIDDEN, RecordingEntry

DATA = Path(__file__).parent / "data" / "0.1.0"
STORED_PLAN, STORED_RESULT = (DATA / "plan.json").read_bytes(), (DATA / "result.json").read_bytes()


def test_a_stored_plan_is_read() -> None:
    plan = decode_plan(STORED_PLAN)
    steps = {step.step: step for step in plan.steps}
    assert plan.targets[0].boot_identity == "8d88348a-7eed-4d14-b06d-3fef701966a0 1795338575"
    assert steps["crash"].undo_state["patience"] == 130.0
    assert [(step.grace_seconds, step.max_attempts) for step in steps["crash"].undo.steps] == [(130.0, 1), (0.0, 3)]
    assert steps["mark"].preconditions == (FactCheck("machine", "off"),)
    timer = FailsafeTimer("nodefall-stored-plan-ead26e-stop", 900.0, ("systemctl", "start", "kubelet.service"))
    assert steps["stop"].failsafe_timer == timer
    facts = plan.facts["worker-1"]
    assert {"failsafe-timers", "inhibitor-kubelet", "inhibitor-locks"} <= facts.keys()
    assert not {"planted-timers", "kubelet-inhibitor", "inhibitors"} & facts.keys()


def test_an_overridden_check_of_a_stored_plan_is_read() -> None:
    stored = json.loads(STORED_PLAN) | {"overruled": ["logind: no"]}
    assert decode_plan(json.dumps(stored).encode()).overridden == ("logind: no",)


def test_a_plan_of_this_version_is_read_unchanged() -> None:
    plan = decode_plan(STORED_PLAN)
    assert decode_plan(msgspec.json.encode(plan)) == plan


def test_former_keys_are_written_beside_the_present_ones() -> None:
    stored, document = json.loads(STORED_PLAN), plan_document(decode_plan(STORED_PLAN))
    assert document["overruled"] == document["overridden"] == ()
    assert [target["boot"] for target in document["targets"]] == [target["boot"] for target in stored["targets"]]
    for step, before in zip(document["steps"], stored["steps"], strict=True):
        assert (step["memory"], step["self_heal"]) == (before["memory"], step["failsafe_timer"])
    assert decode_plan(msgspec.json.encode(document)) == decode_plan(STORED_PLAN)


@pytest.mark.parametrize("data", [b"7", b"[]", b"null", b'{"steps": 7}', b'{"targets": [1], "steps": [[]]}', b"{"])
def test_what_is_no_plan_is_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_plan(data)
    with pytest.raises(msgspec.MsgspecError):
        decode_result(data)


def test_a_stored_result_is_read() -> None:
    result = decode_result(STORED_RESULT)
    assert [step.proof_status for step in result.steps] == [ProofStatus.PROVEN, ProofStatus.UNPROVEN]
    assert len(result.steady_state) == 2
    assert (result.leftovers, result.started_by, result.nodefall_version) == ((), "", "")
    assert {verdict.limits for verdict in (*result.steady_state, *result.hypothesis)} == {()}
    assert decode_result(msgspec.json.encode(result)) == result


def test_other_words_of_a_stored_result_are_read() -> None:
    stored = json.loads(STORED_RESULT)
    stored |= {"left_behind": ["a"], "by": "me@here/7", "nodefall": "0.1.0"}
    stored["hypothesis"][0]["assumed"] = ["x=1s"]
    result = decode_result(json.dumps(stored).encode())
    assert (result.leftovers, result.started_by, result.nodefall_version) == (("a",), "me@here/7", "0.1.0")
    assert result.hypothesis[0].assumed_facts == ("x=1s",)


def test_an_undo_is_read() -> None:
    patch = {"type": "kube", "method": "PATCH", "path": "/api/v1/nodes/n1", "shows": ["/spec/unschedulable"]}
    stored: dict[str, Any] = {
        "steps": [
            {"command": patch, "patience": 5.0, "sends": 7, "when": [{"fact": "kubelet-frozen", "value": False}]},
            {"command": {"type": "power", "verb": "on"}, "unless": {"fact": "machine", "value": "on"}},
        ],
        "proof": [{"fact": "nodefall-rules", "value": ""}],
        "disarm": "timer",
    }
    command = KubeCommand("PATCH", "/api/v1/nodes/n1", evidence_pointers=("/spec/unschedulable",))
    expected = Undo(
        (
            UndoStep(command, None, 5.0, 7, (FactCheck("kubelet-stopped-state", False),)),
            UndoStep(PowerCommand(PowerVerb.ON), FactCheck("machine", "on")),
        ),
        (FactCheck("nft-rules", ""),),
        "timer",
    )
    assert msgspec.convert(upgrade_undo(stored), Undo) == expected
    assert msgspec.convert(upgrade_undo(msgspec.to_builtins(expected)), Undo) == expected


def entry(kind: str, type_: str, obj: Any) -> Any:
    decoded = decode(RecordingEntry(1.0, kind, type_, msgspec.Raw(json.dumps(obj).encode()), "n1"), 0)
    assert decoded is not None
    return decoded


def test_words_of_a_recording_are_read() -> None:
    assert entry("meta", "recording", {"format": 1, "overruled": ["x"]}).object == {"format": 1, OVERRIDDEN: ["x"]}
    assert entry("host", "planted-timers", []).type == "failsafe-timers"
    proved = entry("action", "kubelet-freeze", {"phase": "proved", "evidence": {"kubelet-frozen": True}})
    assert proved.object.evidence == {"kubelet-stopped-state": True}

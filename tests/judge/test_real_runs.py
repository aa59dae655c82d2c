"""Runs on real clusters whose first verdict was not what had happened: what each recording shows."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.model.action import ProofStatus
from chaos.model.recording import RecordingEntry
from chaos.model.verdict import Status
from tests.kit.real_runs import is_action, judged_run, run_lines, step_of, with_object

CANCELED = "Job for kubelet.service canceled."


def restarted_in_window(stderr: str) -> list[RecordingEntry]:
    """The restart was answered with exit code 1; nodefall 0.1.0 did not record why, and undid both steps at once."""

    def add_stderr(record: dict[str, Any]) -> dict[str, Any]:
        return record | {"evidence": record["evidence"] | {"stderr": stderr}}

    lines = [
        with_object(line, add_stderr) if stderr and is_action(line, "kubelet-restart", "returned") else line
        for line in run_lines("kubelet-restart-in-window-1")
    ]
    return [line for line in lines if not (line.kind == "action" and b'"undo' in bytes(line.object))]


@pytest.mark.parametrize(
    ("stderr", "status"), [(CANCELED, ProofStatus.PROVEN), ("", ProofStatus.UNPROVEN)], ids=["canceled", "exit code 1"]
)
def test_restart_that_a_shutdown_canceled_has_stopped_the_kubelet(stderr: str, status: ProofStatus) -> None:
    step = step_of(judged_run(restarted_in_window(stderr), "kubelet-restart-in-window"), "restart")
    assert (step.proof_status, step.weak) == (status, False), step.because
    assert ("systemd canceled the restart" in step.because) is bool(stderr) or "did not cancel" in step.because


def test_preempted_pod_whose_container_exits_0_has_succeeded() -> None:
    """Only DisruptionTarget says why the pod ended: Succeeded, no reason, "Pod was preempted by Kubelet ..."."""
    result = judged_run(run_lines("kubelet-preemption-1"), "kubelet-preemption")
    assert result.hypothesis[0].expected.startswith("any pod with phase Succeeded, no reason, disruption Termination")
    step = step_of(result, "preempt")
    assert (step.proof_status, step.weak) == (ProofStatus.PROVEN, False), step.because
    assert step.because == "the kubelet preempted web-64f98dc964-272vw"
    assert {verdict.status for verdict in result.hypothesis} == {Status.HELD}, result.headline

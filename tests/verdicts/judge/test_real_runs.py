"""Runs on real clusters whose first verdict was not what had happened: what each recording shows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import yaml

from chaos.core.action import ProofStatus, Target
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.recording import ActionPhase, RecordingEntry
from chaos.core.store.recording import build_timeline
from chaos.core.time_bounds import source_time
from chaos.core.verdict import Status
from tests.kit.real_runs import is_action, judged_run, run_lines, step_of, with_object
from tests.kit.story import EXPERIMENTS, details, of_recording, plugin_registry, shipped

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
    assert result.hypothesis[0].expected.startswith(
        "at least one pod is Succeeded, without a reason and marked as termina"
    )
    step = step_of(result, "preempt")
    assert (step.proof_status, step.weak) == (ProofStatus.PROVEN, False), step.because
    assert step.because == "the kubelet preempted web-64f98dc964-272vw"
    assert {verdict.status for verdict in result.hypothesis} == {Status.HELD}, result.headline


def test_terminating_pod_was_evicted_whatever_the_budget() -> None:
    """The node of the step had the pod that the rollout was deleting: 201, though the budget allowed nothing."""
    timeline = build_timeline(run_lines("rolling-update-counts-2"))
    evictions = {record.phase: (entry, record) for entry, record in timeline.actions if entry.type == "evict-pod"}
    begin, returned = evictions[ActionPhase.BEGIN], evictions[ActionPhase.RETURNED]
    (pod,) = returned[1].evidence["pods"]
    assert (pod["pod"].partition("/")[2], pod["status"], pod["refusals"]) == ("db-2", 201, [])
    before = timeline.pods[pod["uid"]].at(begin[0].t)
    assert before is not None
    assert before.object.metadata.deletion_timestamp is not None
    (budget,) = (history for (_, name), history in timeline.poddisruptionbudgets.items() if name == "db")
    allowed = budget.at(begin[0].t)
    assert allowed is not None
    assert allowed.object.status is not None
    assert (allowed.object.status.current_healthy, allowed.object.status.desired_healthy) == (2, 2)


def test_rollout_and_eviction_are_of_different_pods() -> None:
    """Which pod of a rollout terminates on the target is chance, so the step evicts pods that are not rolled."""
    experiment = shipped("rolling-update-counts")
    (evict,) = (step for step in experiment.spec.method if step.action == "evict-pod")
    rolled = {step.with_["name"] for step in experiment.spec.method if step.action == "rollout-restart"}
    key, _, value = evict.with_["selector"].partition("=")
    assert experiment.spec.workload is not None
    texts = [(EXPERIMENTS / name).read_text() for name in experiment.spec.workload.manifests]
    sets = [d for text in texts for d in yaml.safe_load_all(text) if d and d["kind"] == "StatefulSet"]
    evicted = {d["metadata"]["name"] for d in sets if d["spec"]["template"]["metadata"]["labels"].get(key) == value}
    assert evicted
    assert not evicted & rolled


@pytest.mark.parametrize(("seconds", "because"), [(30, "was not seen off"), (240, "was still off")])
def test_power_on_of_a_machine_that_still_went_down_is_not_proven(seconds: float, because: str) -> None:
    """Powered on 60 s after poweroff, the machine went off 36 s later, and stayed off until undo."""
    lines = run_lines("kubelet-restart-in-window-2")
    begin = next(line.t for line in lines if is_action(line, "power-on", "begin"))
    result = judged_run((line for line in lines if line.t < begin + seconds), "kubelet-restart-in-window")
    step = step_of(result, "power-on")
    assert step.proof_status is ProofStatus.DISPROVEN
    assert because in step.because


def test_cancellation_in_flight_is_refused_by_systemd_252() -> None:
    """The command was answered 0, logind still reported the shutdown, and the machine went off."""
    experiment, lines = shipped("cancelled-in-flight"), run_lines("cancelled-in-flight-1")
    result = judged_run(lines, experiment, steps={"cancel": "cancel-shutdown"})
    step = step_of(result, "cancel")
    assert step.proof_status is ProofStatus.DISPROVEN
    assert "systemd cancels that only from version 257 on" in step.because
    action = plugin_registry().actions[experiment.spec.method[1].action]
    with pytest.raises(Unsupported, match="has systemd 252, which exits with 0 but still shuts down"):
        action.prepare(Target("nf-worker3", facts={"systemd-version": 252}), action.params())


def test_machine_seen_off_is_not_rebooted() -> None:
    """The last reading of PID 1 is 2.6 s before the first of a machine that is off, and stays off."""
    rebooted = "{assert: node-rebooted, with: {node: victim}, never: {for: 64s}}"
    verdict = of_recording(run_lines("cancelled-in-flight-1"), "poweroff", rebooted)
    assert verdict.status is Status.HELD, verdict.because


def test_the_rollout_has_begun_when_the_experiment_evicts() -> None:
    """The controller of a busy cluster deleted its first pod 21 s later, when an eviction at 8 s was long allowed."""
    timeline = build_timeline(run_lines("rolling-update-counts-1"))
    begin = next(entry.t for entry, record in timeline.actions if entry.type == "rollout-restart")
    pods = (version.object.metadata for history in timeline.pods.values() for version in history)
    ends = [(m, source_time(m.deletion_timestamp)) for m in pods if m.deletion_grace_period_seconds]
    first = min(end - (m.deletion_grace_period_seconds or 0) for m, end in ends if end) - begin
    assert 20 < first < 22
    (evict,) = (step for step in shipped("rolling-update-counts").spec.method if step.action == "evict-pod")
    assert evict.after is not None
    name, _, offset = evict.after.partition(" + ")
    assert (name, parse_duration(offset) > first) == ("roll", True)


@pytest.mark.parametrize("name", ["fast-reboot", "capacity-registered"])
def test_machine_that_did_not_boot_again_is_no_finding_about_the_cluster(name: str) -> None:
    """Containers with the restart policy ``no``: they ended and stayed off until undo. Both runs were violated."""
    result = judged_run(run_lines(f"{name}-1"), name)
    step = step_of(result, "reboot")
    assert step.proof_status is ProofStatus.DISPROVEN
    assert "went off and did not boot again" in step.because
    assert {verdict.status for verdict in result.hypothesis} == {Status.INCONCLUSIVE}


def without_guesses(lines: Iterable[RecordingEntry]) -> list[RecordingEntry]:
    """Without the blind windows that 0.1.0 opened when /readyz was slow: no watch was begun again with a new list."""
    saved = [line for line in lines if not (line.kind == "blind" and "@" not in line.type)]
    lists = [line.t for line in saved if line.type == "LIST"]
    assert max(lists) - saved[0].t < 2
    return saved


@pytest.mark.parametrize(
    ("name", "guessed"),
    [
        ("fast-reboot-2", "the API server took 1.3s to answer"),
        ("taint-swapped-1", "the API server took 1.1s to answer"),
        ("no-execute-removed-in-time-1", "the API server took 1.4s to answer"),
        ("eviction-rate-1", "the API server took 1.1s to answer"),
    ],
)
def test_a_slow_server_left_the_states_known(name: str, guessed: str) -> None:
    lines, experiment = run_lines(name), name.rpartition("-")[0]
    before, result = judged_run(lines, experiment), judged_run(without_guesses(lines), experiment)
    assert (before.status, guessed in details(before)) == (Status.INCONCLUSIVE, True)
    assert {verdict.status for verdict in result.hypothesis} == {Status.HELD}, result.headline


def test_five_new_pods_take_longer_than_the_slowest_start_before() -> None:
    """They were available 28 s after the step, 3 s after the undo, where the slowest of three had started in 7 s.

    At first that was violated, by a deadline of 10 s. Three times the slowest start, 21 s, was too early, too.
    """
    result = judged_run(without_guesses(run_lines("network-unavailable-1")), "network-unavailable")
    late = next(v for v in result.hypothesis if v.name == "new pods become available on other nodes")
    assert "within 35.428s of grow + 1s, for 2s (10s, with baseline 5 x 7.1 s" in late.expected
    assert late.status is Status.INCONCLUSIVE
    assert late.because.startswith("not true before the undo of step say began")
    assert {v.status for v in result.hypothesis if v is not late} == {Status.HELD}, result.headline


@pytest.mark.parametrize(
    ("seconds", "status", "because"),
    [
        (1, Status.INCONCLUSIVE, "has not answered"),
        (17, Status.INCONCLUSIVE, "has not answered"),
        (19, Status.INCONCLUSIVE, "took effect 0.0 to 18.1 s after it was sent"),
        (60, Status.VIOLATED, "eviction not refused with 429"),
    ],
)
def test_an_unanswered_eviction_is_not_judged(seconds: float, status: Status, because: str) -> None:
    """The API server answered 201 after 18.1 s; after 5 s it was said that it had not refused."""
    lines = run_lines("rolling-update-counts-1")
    begin = next(line.t for line in lines if is_action(line, "evict-pod", "begin"))
    refused = "{assert: eviction-refused, with: {namespace: workload}, within: 5s}"
    verdict = of_recording((line for line in lines if line.t < begin + seconds), "evict-pod", refused)
    assert verdict.status is status
    assert because in verdict.because


def with_containers(lines: list[RecordingEntry]) -> list[RecordingEntry]:
    """As if the node had ``ctr``: a reading 5 s after the forced deletion, in which the pod's container still runs."""
    force = next(line for line in lines if is_action(line, "force-delete-pod", "returned"))
    (pod,) = msgspec.json.decode(force.object)["evidence"]["pods"]
    namespace, _, name = pod["pod"].partition("/")
    container = {"namespace": namespace, "pod": name, "uid": pod["uid"], "container": "db", "id": "c", "startedAt": 1.0}
    reading = msgspec.Raw(msgspec.json.encode({"running": [container]}))
    entry = RecordingEntry(force.t + 5, "host", "containers", reading, node="nf-worker")
    return sorted([*lines, entry], key=lambda line: line.t)


def test_only_the_node_knows_what_runs_behind_a_partition() -> None:
    """The node had no crictl, so nothing showed whether the force-deleted pod still ran beside its replacement."""
    lines, name = run_lines("force-delete-partitioned-1"), "at most one pod of each identity runs"
    unknown, known = (
        next(v for v in judged_run(each, "force-delete-partitioned").hypothesis if v.name == name)
        for each in (lines, with_containers(lines))
    )
    assert unknown.status is Status.INCONCLUSIVE
    assert "the running containers of each node" in unknown.because
    assert known.status is Status.VIOLATED, known.because


def test_rules_that_the_host_removed_by_itself_do_not_disprove_a_partition() -> None:
    """The timers of four hosts were armed before the common start: on one the rules were gone 3.4 s before 3 min."""
    result = judged_run(run_lines("zone-cut-off-1"), "zone-cut-off")
    assert {step.proof_status for step in result.steps} == {ProofStatus.PROVEN}
    assert {verdict.status for verdict in result.hypothesis} == {Status.HELD}, result.headline


def test_a_renewal_that_was_lost_with_the_leader_of_etcd_is_sent_again() -> None:
    """The kubelet's client gave up after 10 s: 20.4 s lay between two renewals, and the next was on time."""
    lines = run_lines("etcd-leader-lost-1")
    begin = next(line.t for line in lines if is_action(line, "etcd-leader-kill", "begin"))
    leases = build_timeline(lines).leases.values()
    renewed = [[source_time(v.object.spec.renew_time) or 0.0 for v in history if v.object.spec] for history in leases]
    gaps = [after - before for times in renewed for before, after in pairwise(times) if after > begin]
    assert 20.0 <= max(gaps) <= 20.4 + 0.1
    result = judged_run(lines, "etcd-leader-lost")
    assert {verdict.status for verdict in result.hypothesis} == {Status.HELD}, result.headline

"""The bundled experiments on recordings of a real cluster, and on recordings derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.core.action import ProofStatus
from chaos.core.experiment import Experiment
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.verdict import Status
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import RECORDINGS, blinded, details, manifests, plugin_registry, shipped

HELD, VIOLATED, INCONCLUSIVE = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE
IN_DEMO: dict[str, Any] = {"manifests": (), "namespace": "demo"}
POWER_CUT = {"steps": {"power-off": "power-cut"}}


def lines_of(number: str) -> list[RecordingEntry]:
    return list(read_recording(next(RECORDINGS.glob(f"{number}-*.gz"))))


def named(name: str) -> Experiment:
    own = Path(__file__).parent / "experiments" / f"{name}.yaml"
    return Experiment.model_validate(yaml.safe_load(own.read_text())) if own.exists() else shipped(name)


def judged(lines: Iterable[RecordingEntry], name: str, **options: Any) -> RunResult:
    experiment = named(name)
    given = Options(**({"manifests": manifests(experiment)} | options))
    return judge(experiment, build_timeline(lines), plugin_registry(), given)


@pytest.mark.parametrize(("number", "name"), [("01", "graceful-poweroff"), ("05", "graceful-poweroff")])
def test_overridden_preflight_check_makes_the_result_inconclusive(number: str, name: str) -> None:
    meta, *rest = lines_of(number)
    preflight = {"overruled": ["kubelet-inhibitor: it is lost"], "warnings": ["clock: 7s off"]}
    origin = {"by": "ann@a/7", "nodefall": "1.2", "planHash": "abc"}
    known = msgspec.json.decode(meta.object, type=dict[str, Any])
    meta = msgspec.structs.replace(meta, object=msgspec.Raw(msgspec.json.encode(known | preflight | origin)))
    result = judged([meta, *rest], name)
    assert (result.status, result.exit_code) == (INCONCLUSIVE, 2)
    assert result.sentence == "A failed preflight check was overridden with --anyway: kubelet-inhibitor"
    assert "preflight check failed and was overridden with --anyway: kubelet-inhibitor" in details(result)
    assert {v.status for v in (*result.hypothesis, *result.recovery)} == {INCONCLUSIVE}
    assert result.notes[:2] == (
        "preflight check failed and was overridden with --anyway: kubelet-inhibitor: it is lost",
        "preflight warning: clock: 7s off",
    )
    assert (result.started_by, result.nodefall_version, result.plan_hash) == ("ann@a/7", "1.2", "abc")


@pytest.mark.parametrize(
    ("number", "name", "options", "code", "words"),
    [
        ("01", "graceful-poweroff", {}, 0, "5 of 5 held: The cluster behaved as expected after"),
        ("16", "graceful-poweroff", {}, 0, "held"),
        ("10", "graceful-poweroff", {}, 0, "held"),
        ("02", "cancelled-shutdown", {}, 0, "6 of 6 held: The cluster behaved as expected after"),
        ("01", "cancelled-shutdown", {}, 2, "step 'announce' is missing"),
        ("02", "graceful-poweroff", {}, 2, "step 'power-off' is missing"),
        ("27", "graceful-poweroff", {}, 2, "step 'power-on' is missing"),
        ("02", "lock-after-cancel", {}, 2, "no later reading of the inhibitors"),
        ("01", "shutdown-cancelled-in-time", {}, 2, "step 'schedule' is missing"),
        ("05", "graceful-poweroff", {}, 2, "step 'power-off' is missing"),
        ("05", "graceful-poweroff", POWER_CUT, 1, "the kubelet announces the shutdown"),
        ("07", "partition", {}, 0, "held"),
        ("12", "partition", {}, 2, "ra-worker still reached the API over ipv6"),
        ("27", "poweroff-cancelled", {}, 1, "the node is Ready again"),
        ("27", "cancelled-in-flight", {"steps": {"cancel": "cancel-shutdown"}}, 0, "1 violated as known"),
        ("02", "cancelled-in-flight", {}, 2, "step 'power-off' is missing"),
        ("02", "pods-not-restored", {}, 0, "held"),
        ("02", "shutdown-metrics", {}, 0, "held"),
        ("02", "poweroff-after-cancel", {}, 2, "step 'power-off' is missing"),
        ("01", "critical-pods-last", {}, 0, "held"),
        ("10", "critical-pods-last", {}, 0, "held"),
        ("16", "critical-pods-last", {}, 0, "held"),
        ("01", "rejected-pods", {}, 0, "held"),
        ("10", "rejected-pods", {}, 0, "held"),
        ("16", "rejected-pods", {}, 0, "held"),
        ("16", "exit-codes", {}, 0, "held"),
        ("01", "endpoints-until-the-end", {}, 0, "held"),
        ("10", "endpoints-until-the-end", {}, 0, "held"),
        ("16", "endpoints-until-the-end", {}, 0, "held"),
        ("05", "volume-forced-detach", {}, 2, "step 'force' is missing"),
        ("05", "volume-of-terminating-pod", {}, 2, "no VolumeAttachments were observed"),
        ("01", "exit-codes", {}, 2, "no such pod existed"),
        ("10", "priority-shutdown", {}, 0, "held"),
        ("01", "priority-shutdown", {}, 2, "the experiment requires kubelet.shutdownGracePeriod"),
        ("10", "no-priority-list", {}, 2, "the experiment requires kubelet.shutdownGracePeriodCriticalPods"),
        ("01", "grace-period-zero", {}, 2, "the experiment requires kubelet.shutdownGracePeriod"),
        ("01", "kubelet-restart-in-window", {}, 2, "step 'restart' is missing"),
        ("01", "bypassed-logind", {}, 2, "step 'power-off' is missing"),
        ("16", "shutdown-metrics-after-reboot", {}, 0, "held"),
        ("05", "shutdown-metrics-after-reboot", {}, 2, "step 'power-off' is missing"),
        ("05", "power-cut", {}, 0, "13 of 13 held: The cluster behaved as expected after"),
        ("05", "statefulset-stuck", {}, 0, "held"),
        ("05", "back-after-eviction", {}, 0, "held"),
        ("05", "back-before-eviction", {}, 2, "no such pod existed"),
        ("05", "out-of-service-no-execute", {}, 2, "step 'declare' is missing"),
        ("05", "fast-reboot", {}, 2, "step 'reboot' is missing"),
        ("07", "power-cut", {}, 2, "step 'cut' is missing"),
        ("07", "partition-waited-out", IN_DEMO, 2, "at most one pod of each identity runs"),
        ("07", "partition-ridden-out", IN_DEMO, 2, "step 'cut' is missing"),
        ("07", "force-delete-partitioned", IN_DEMO, 2, "step 'cut' is missing"),
        ("05", "dead-node-deleted", IN_DEMO, 2, "step 'delete' is missing"),
        ("25", "two-nodes-of-a-zone", IN_DEMO, 0, "6 of 6 held: The cluster behaved as expected after cut on 2 nodes"),
        ("25", "eviction-rate", IN_DEMO, 2, "step 'stop' is missing"),
        ("08", "drain-allowed", IN_DEMO, 2, "step 'blocked' is missing"),
        ("01", "graceful-poweroff", {"bind": {"victim": ("ra-worker2",)}}, 2, "step 'power-off' is missing"),
        ("01", "graceful-poweroff", {"bind": {"victim": ("ra-worker",)}}, 0, "held"),
        (
            "01",
            "graceful-poweroff",
            {"facts": {"kubelet.shutdownGracePeriod": "0s"}},
            2,
            "the experiment requires kubelet.",
        ),
        ("01", "graceful-poweroff", {"manifests": ()}, 2, "steady state did not hold before the first step"),
        ("01", "graceful-poweroff", {"manifests": (), "namespace": "demo"}, 0, "held"),
    ],
)
def test_recordings(number: str, name: str, options: dict[str, Any], code: int, words: str) -> None:
    result = judged(lines_of(number), name, **options)
    assert (result.exit_code, words in details(result)) == (code, True), details(result)


def test_blocked_drain() -> None:
    """The recording has neither the option --ignore-daemonsets of kubectl nor the responses of the API server."""
    lines = lines_of("08")
    for line in lines:
        if line.kind == "action" and line.type == "drain":
            record = msgspec.json.decode(line.object)
            line.object = msgspec.Raw(
                msgspec.json.encode(record | {"params": record["params"] | {"ignore-daemonsets": True}})
            )
    result = judged(lines, "drain-blocked", **IN_DEMO)
    assert [v.status for v in result.hypothesis] == [INCONCLUSIVE, HELD, HELD, HELD]
    assert "the responses of the API server to drain-blocked were not recorded" in details(result)


def test_power_cut_is_not_graceful() -> None:
    """The headline has the node, what did not happen and the bound; the verdict has the observation and its time."""
    result = judged(lines_of("05"), "graceful-poweroff", **POWER_CUT)
    short = "2 of 5 violated: Node rb-worker did not have Ready=False (node is shutting down) within 5 s"
    assert result.headline == short
    reason = result.hypothesis[0].because
    assert reason.startswith("at the deadline, 5.0 s after power-off: rb-worker: Ready is True")
    assert [step.proof_status for step in result.steps] == [ProofStatus.PROVEN, ProofStatus.PROVEN]
    assert any("judged on the recorded action power-cut" in note for note in result.notes)


def test_incomplete_partition_is_inconclusive() -> None:
    """Recording 12: the rules blocked only IPv4, the kubelet still uses IPv6, and Ready never changes."""
    result = judged(lines_of("12"), "partition")
    assert {v.status for v in (*result.hypothesis, *result.recovery)} == {INCONCLUSIVE}
    assert [step.proof_status for step in result.steps] == [ProofStatus.DISPROVEN]
    assert all("did not take effect" in v.because for v in result.hypothesis)


def test_systemd_257_does_not_signal_the_cancellation() -> None:
    """Recording 27: the machine stays up, but the node stays NotReady."""
    result = judged(lines_of("27"), "poweroff-cancelled")
    assert [v.status for v in result.hypothesis] == [HELD, VIOLATED]
    assert "Ready is False (KubeletNotReady: node is shutting down)" in result.hypothesis[1].because
    assert "came true 32.1 s too late, 92.1 s after cancel" in result.hypothesis[1].because
    assert any("kubelet-restart" in note for note in result.notes)


def with_change(line: RecordingEntry, change: Callable[[Any], Any]) -> RecordingEntry:
    return msgspec.structs.replace(
        line, object=msgspec.Raw(msgspec.json.encode(change(msgspec.json.decode(line.object))))
    )


def lost_lock() -> Iterator[RecordingEntry]:
    """Recording 01 without the inhibitor lock: the machine is off right after the announcement.

    The pods of the victim do not change, and run again with a new container after power-on.
    """
    lines = lines_of("01")
    begin = next(line.t for line in lines if line.kind == "action")
    back = next(line.t for line in lines if line.kind == "action" and line.type == "power-on")
    last: dict[str, Any] = {}
    for line in lines:
        pod = msgspec.json.decode(line.object) if line.kind == "pods" and line.type != "BOOKMARK" else None
        if pod is None:
            yield line
            continue
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if line.t < begin or node not in (None, "ra-worker"):
            if line.type != "DELETED" and node == "ra-worker":
                last[uid] = pod
            elif node == "ra-worker":
                last.pop(uid, None)
            yield line
    for count, pod in enumerate(last.values()):
        status = pod["status"]["containerStatuses"][0]
        status["restartCount"], status["containerID"] = 1, f"containerd://new{count}"
        status["state"] = {"running": {"startedAt": "2026-11-21T03:37:30Z"}}
        raw = msgspec.Raw(msgspec.json.encode(pod))
        yield RecordingEntry(back + 4 + count / 100, "pods", "MODIFIED", raw)


def test_power_off_without_the_lock_is_not_graceful() -> None:
    """Ready=False has the message "node is shutting down" then, too, but no pod is terminated."""
    result = judged(sorted(lost_lock(), key=lambda line: line.t), "graceful-poweroff")
    assert result.exit_code == 1, result.headline
    assert [v.status for v in result.hypothesis] == [HELD, VIOLATED, HELD]
    assert result.sentence == "Not every pod on ra-worker was terminated by the kubelet within 40 s"
    because = result.hypothesis[1].because
    assert because.startswith("at the deadline, 40.0 s after power-off: 6 of 6, for example demo/")
    assert "Running, no DisruptionTarget" in because


def without(lines: Iterable[RecordingEntry], drop: Callable[[RecordingEntry], bool]) -> list[RecordingEntry]:
    return [line for line in lines if not drop(line)]


def test_step_without_proof_is_inconclusive() -> None:
    """Recording 05 without the report of the power control and without the new boot: violations are not judged."""
    unproven = without(
        lines_of("05"),
        lambda line: line.kind == "action" and line.type == "power-cut" and b'"proved"' in bytes(line.object),
    )
    unproven = without(unproven, lambda line: line.kind == "host" and line.type in ("machine", "pid1-start"))
    result = judged(unproven, "graceful-poweroff", **POWER_CUT)
    assert result.exit_code == 2
    assert "nothing proves that 'power-off' took effect on rb-worker" in details(result)
    assert {v.status for v in result.hypothesis} == {INCONCLUSIVE}


@pytest.mark.parametrize("seconds", [3, 6, 20, 60, 111])
def test_truncated_recording_is_inconclusive(seconds: float) -> None:
    lines = lines_of("01")
    result = judged([line for line in lines if line.t < lines[0].t + seconds], "graceful-poweroff")
    assert result.exit_code == 2, result.headline


SOURCES = ["nodes", "pods", "deployments", "statefulsets", "daemonsets", "events"]


@pytest.mark.parametrize(
    ("number", "name", "options"), [("01", "graceful-poweroff", {}), ("05", "graceful-poweroff", POWER_CUT)]
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.floats(0, 130), length=st.floats(1, 20))
def test_blind_window_never_reverses_a_verdict(
    number: str, name: str, options: dict[str, Any], start: float, length: float
) -> None:
    lines = lines_of(number)
    clear = judged(lines, name, **options)
    cut = judged(sorted(blinded(lines, SOURCES, start, length), key=lambda line: line.t), name, **options)
    for before, after in zip((*clear.hypothesis, *clear.recovery), (*cut.hypothesis, *cut.recovery), strict=True):
        assert after.status in (before.status, INCONCLUSIVE), f"{after.name}: {after.because}"


def test_blind_window_over_a_deadline_is_named() -> None:
    cut = sorted(blinded(lines_of("01"), SOURCES, 4.5, 6), key=lambda line: line.t)
    result = judged(cut, "graceful-poweroff")
    assert result.hypothesis[0].status is INCONCLUSIVE
    assert "nodes could not be observed for 6.0 s: connection refused" in result.hypothesis[0].because


def test_step_on_two_nodes() -> None:
    """Recording 25: one step on two nodes of a zone."""
    document = named("partition").model_dump(by_alias=True)
    document["spec"] |= {
        "targets": {"victims": {"role": "worker", "count": 2}},
        "method": [{"name": "cut", "action": "power-cut", "target": "victims"}],
        "hypothesis": [
            {
                "assert": "node-condition",
                "with": {"node": "victims", "type": "Ready", "status": "Unknown"},
                "within": "controller.nodeMonitorGracePeriod + 15s",
            }
        ],
    }
    result = judge(Experiment.model_validate(document), build_timeline(lines_of("25")), plugin_registry())
    assert result.targets == {"victims": ("rz-worker", "rz-worker2")}
    assert [(s.node, s.proof_status) for s in result.steps] == [
        ("rz-worker", ProofStatus.PROVEN),
        ("rz-worker2", ProofStatus.PROVEN),
    ]
    assert result.exit_code == 0, result.headline
    assert math.isclose(result.hypothesis[0].deadline or 0, (result.steps[0].begin or 0) + 65)


def test_live_verdicts_equal_final_verdicts() -> None:
    """A verdict of a live run is pending or equal to the final one."""
    lines = lines_of("01")
    final = judged(lines, "graceful-poweroff")
    options = Options(bind={"victim": ("ra-worker",)}, namespace="demo")
    for seconds in (2, 5, 8, 30, 60, 113):
        timeline = build_timeline(line for line in lines if line.t < lines[0].t + seconds)
        live = judge(
            named("graceful-poweroff"), timeline, plugin_registry(), options, live=True, now=lines[0].t + seconds
        )
        for now, later in zip(live.hypothesis, final.hypothesis, strict=True):
            assert now.status in (Status.PENDING, later.status), f"{seconds}: {now.name}: {now.because}"
    done = judge(named("graceful-poweroff"), build_timeline(lines), plugin_registry(), options, live=True)
    assert [v.status for v in done.hypothesis] == [v.status for v in final.hypothesis]
    assert done.status is HELD


def test_live_step_without_proof_is_inconclusive() -> None:
    unproven = without(lines_of("05"), lambda line: line.kind == "action" and b'"proved"' in bytes(line.object))
    options = Options(steps={"power-off": "power-cut"}, namespace="demo")
    unproven = without(unproven, lambda line: line.kind == "host" and line.type in ("machine", "pid1-start"))
    live = judge(named("graceful-poweroff"), build_timeline(unproven), plugin_registry(), options, live=True)
    assert live.status is INCONCLUSIVE
    assert live.sentence == "No proof that step power-off took effect on rb-worker"


@pytest.mark.parametrize(
    ("number", "name", "options"),
    [
        ("01", "cancelled-shutdown", {}),
        ("02", "graceful-poweroff", {}),
        ("02", "lock-after-cancel", {}),
        ("12", "partition", {}),
        ("01", "graceful-poweroff", {"facts": {"kubelet.shutdownGracePeriod": "0s"}}),
        ("01", "graceful-poweroff", {"manifests": ()}),
        ("05", "graceful-poweroff", POWER_CUT | {"facts": {"kubelet.shutdownGracePeriod": "unknown"}}),
    ],
)
def test_inconclusive_verdict_has_a_remedy(number: str, name: str, options: dict[str, Any]) -> None:
    result = judged(lines_of(number), name, **options)
    inconclusive = [v for v in (*result.steady_state, *result.hypothesis, *result.recovery) if v.status is INCONCLUSIVE]
    assert inconclusive
    assert all("; to decide this, nodefall needs " in v.because for v in inconclusive), [
        v.because for v in inconclusive
    ]


@pytest.mark.parametrize("seconds", [3, 6, 20, 60, 111])
def test_truncated_recording_has_a_remedy(seconds: float) -> None:
    lines = lines_of("01")
    result = judged([line for line in lines if line.t < lines[0].t + seconds], "graceful-poweroff")
    inconclusive = [v for v in (*result.hypothesis, *result.recovery) if v.status is INCONCLUSIVE]
    assert all("; to decide this, nodefall needs " in v.because for v in inconclusive), [
        v.because for v in inconclusive
    ]

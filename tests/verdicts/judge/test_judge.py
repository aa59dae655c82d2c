"""The judge on handmade timelines: matching, proof, steady state, recovery, abort conditions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import pytest

from chaos.core.action import AnyAction, Proof, ProofResult, ProofStatus, StepRun
from chaos.core.duration import satisfies
from chaos.core.recording import TRUNCATED_RECORDING, BlindWindow
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import HELD, INCONCLUSIVE, T0, VIOLATED, Story, details, experiment, plugin_registry, stamp

BOTH = "[{name: stop, action: poweroff, target: victim}, {name: start, action: power-on, target: victim}]"
SIGNALS = """[
  {name: announce, action: prepare-for-shutdown, target: victim, with: {active: true}},
  {name: cancel, action: prepare-for-shutdown, target: victim, with: {active: false}}]"""
NOT_READY = '[{assert: node-condition, with: {node: victim, status: "False"}, within: 5s}]'


def stopped(**meta: Any) -> Story:
    """A power-off at 10 that is announced at 11 and proven at 15, power-on at 40, Ready at 45."""
    story = Story(**meta).node(0, "n1").node(0, "n2").done(10, "poweroff", step="stop")
    story.node(11, "n1", "False").host(15, "machine", "off").done(40, "power-on", step="start")
    return story.host(44, "machine", "on").node(45, "n1", boot_id="next")


def run(story: Story, end: float = 100, hypothesis: str = NOT_READY, method: str = BOTH, **rest: Any) -> RunResult:
    options = rest.pop("options", Options())
    return judge(experiment(hypothesis, method, **rest), story.timeline(end), plugin_registry(), options)


def test_held() -> None:
    result = run(stopped())
    assert (result.status, result.exit_code) == (HELD, 0), result.headline
    assert result.headline == "1 of 1 held: Node n1 had Ready=False within 5 s"
    assert result.targets == {"victim": ("n1",)}
    assert [s.proof_status for s in result.steps] == [ProofStatus.PROVEN, ProofStatus.PROVEN]


def test_violated() -> None:
    result = run(stopped(), hypothesis=NOT_READY.replace("5s", "500ms"))
    assert (result.status, result.exit_code) == (VIOLATED, 1)
    assert result.headline == "1 of 1 violated: Node n1 did not have Ready=False within 0.5 s"
    (verdict,) = result.hypothesis
    assert (verdict.sentence, verdict.bound, verdict.subjects) == (result.sentence, 0.5, ("n1",))
    assert verdict.because.startswith("at the deadline, 0.5 s after stop: n1: Ready is True")
    assert "0.5 s too late, 1.0 s after stop" in verdict.because


def test_violated_beats_inconclusive() -> None:
    two = "[{name: a, assert: nodes-ready, with: {nodes: gone}, within: 1s}, " + NOT_READY[1:].replace("5s", "100ms")
    result = run(stopped(), hypothesis=two)
    assert [v.status for v in result.hypothesis] == [INCONCLUSIVE, VIOLATED]
    assert result.exit_code == 1


KNOWN = 'known: {versions: ">=v1.32, <v1.36", issue: "https://example.org/1", instead: it is late}'


@pytest.mark.parametrize(
    ("bound", "version", "shown", "code", "tally"),
    [
        ("500ms", "v1.35.2", "known", 0, "0 of 1 held, 1 violated as known"),
        ("500ms", "v1.36.0", "violated", 1, "1 of 1 violated"),
        ("500ms", "", "violated", 1, "1 of 1 violated"),
        ("5s", "v1.35.2", "held", 0, "1 of 1 held"),
    ],
)
def test_a_violation_that_is_known_of_the_version_does_not_count(
    bound: str, version: str, shown: str, code: int, tally: str
) -> None:
    hypothesis = NOT_READY.replace("within: 5s", f"within: {bound}, {KNOWN}")
    result = run(stopped(kubernetes=version), hypothesis=hypothesis)
    (verdict,) = result.hypothesis
    assert (verdict.shown, result.exit_code, result.tally) == (shown, code, tally)
    assert (verdict.status is VIOLATED) == (bound == "500ms")
    assert (verdict.known is not None) == (shown == "known")
    assert (": it is late (https://example.org/1)" in verdict.because) == (shown == "known")


def test_a_known_violation_hides_no_other() -> None:
    two = f"[{{name: a, {KNOWN}, {NOT_READY[2:-2].replace('5s', '500ms')}}}, {NOT_READY[1:].replace('5s', '100ms')}"
    result = run(stopped(kubernetes="v1.35.2"), hypothesis=two)
    assert [v.shown for v in result.hypothesis] == ["known", VIOLATED]
    assert (result.exit_code, result.tally) == (1, "1 of 2 violated, 1 violated as known")
    assert result.sentence == result.hypothesis[1].sentence


def test_a_known_violation_that_cannot_be_judged_is_inconclusive() -> None:
    hypothesis = f"[{{assert: nodes-ready, with: {{nodes: gone}}, within: 1s, {KNOWN}}}]"
    result = run(stopped(kubernetes="v1.35.2"), hypothesis=hypothesis)
    assert [(v.status, v.known) for v in result.hypothesis] == [(INCONCLUSIVE, None)]
    assert result.exit_code == 2


def test_steady_state_is_judged_just_before_the_first_step() -> None:
    story = stopped().node(5, "n2", "False").node(10, "n2")
    result = run(story)
    assert result.exit_code == 2
    assert [v.status for v in result.steady_state] == [VIOLATED]
    assert result.headline == "1 of 1 inconclusive: Node n2 was not Ready before the first step"
    assert "the steady state did not hold before the first step: nodes-ready: n2: Ready is False" in details(result)


def test_entries_at_the_moment_of_the_first_step_count_by_their_order() -> None:
    story = Story().node(0, "n1").node(0, "n2").node(5, "n2", "False").node(10, "n2").done(10, "poweroff", step="stop")
    story.node(11, "n1", "False").host(15, "machine", "off").done(40, "power-on", step="start")
    result = run(story.host(44, "machine", "on").node(45, "n1", boot_id="next"))
    assert result.exit_code == 0, result.headline


@pytest.mark.parametrize(
    ("ready_again", "end", "status"),
    [(45.0, 100.0, HELD), (71.0, 100.0, VIOLATED), (71.0, 60.0, INCONCLUSIVE), (45.0, 46.0, HELD)],
)
def test_recovery(ready_again: float, end: float, status: str) -> None:
    story = Story().node(0, "n1").done(10, "poweroff", step="stop").node(11, "n1", "False").host(15, "machine", "off")
    story.done(40, "power-on", step="start").host(44, "machine", "on")
    if ready_again < end:
        story.node(ready_again, "n1", boot_id="next")
    result = run(story, end, recovery={"within": "30s"})
    assert [v.status for v in result.recovery] == [status], result.recovery


def test_recovery_does_not_count_before_the_loss() -> None:
    """At the return of the last step the node is still Ready: its loss has not been detected yet."""
    story = (
        Story().node(0, "n1").done(10, "power-cut", step="stop").host(11, "machine", "off").node(50, "n1", "Unknown")
    )
    result = run(
        story,
        hypothesis="[{assert: node-condition, with: {node: n1, status: Unknown}, within: 60s}]",
        method="[{name: stop, action: power-cut, target: victim}]",
        recovery={"within": "60s"},
    )
    assert [v.status for v in result.recovery] == [VIOLATED]


def test_recovery_counts_from_the_undo() -> None:
    story = stopped().act(60, "poweroff", "undone", step="stop").node(61, "n2", "False").node(80, "n2")
    assert run(story, recovery={"within": "25s"}).recovery[0].status is HELD
    assert run(story, recovery={"within": "15s"}).recovery[0].status is VIOLATED


@pytest.mark.parametrize("always", [{"always": True}, {}], ids=["always", "nothing"])
def test_met_abort_condition_makes_the_result_inconclusive(always: dict[str, Any]) -> None:
    abort = [{"assert": "nodes-ready", "with": {"not-ready-at-most": 0}, **always}]
    result = run(stopped(), abort=abort)
    assert [v.status for v in result.abort] == [VIOLATED]
    assert result.exit_code == 2
    assert result.headline == "inconclusive, with 1 of 1 held: Abort condition met: A node was NotReady 1 s after stop"


@pytest.mark.parametrize(
    ("proven", "last_ready", "status"),
    [
        # As in a run on a real cluster: proof of the nodes, samples of a host, and a last entry 1.2 s after the proof.
        (98.83, "True", HELD),
        (98.83, "False", VIOLATED),
        (60.0, "True", INCONCLUSIVE),
    ],
)
def test_an_abort_condition_holds_to_the_last_proof(proven: float, last_ready: str, status: Status) -> None:
    abort = [{"assert": "nodes-ready", "with": {"not-ready-at-most": 1}, "always": True}]
    story = stopped().node(50, "n1", last_ready).node(51, "n2", last_ready).current(5, "nodes").current(proven, "nodes")
    (verdict,) = run(story.host(100, "pid1-start", 1), abort=abort).abort
    assert verdict.status is status, verdict.because


@pytest.mark.parametrize(
    ("what", "story", "expected", "because"),
    [
        (
            "off",
            Story().done(10, "poweroff").host(15, "machine", "off"),
            ProofStatus.PROVEN,
            "was off 5.0 s after the step",
        ),
        (
            "still on",
            Story().done(10, "poweroff").host(99, "machine", "on"),
            ProofStatus.DISPROVEN,
            "still on 89.0 s after the step",
        ),
        ("no readings", Story().done(10, "poweroff"), ProofStatus.UNPROVEN, "no power control"),
        (
            "off before",
            Story().host(9, "machine", "off").done(10, "poweroff"),
            ProofStatus.UNPROVEN,
            "no power control",
        ),
        (
            "proved line",
            Story().done(10, "poweroff").act(12, "poweroff", "proved", evidence={"machine": "off"}),
            ProofStatus.PROVEN,
            "was off 2.0 s after the step",
        ),
        (
            "a new boot",
            Story().host(5, "pid1-start", 100).done(10, "poweroff").host(60, "pid1-start", 999),
            ProofStatus.PROVEN,
            "PID 1 of n1 was started again",
        ),
        (
            "unknown format",
            Story().host(5, "pid1-start", "soon").done(10, "poweroff").host(60, "pid1-start", [1]),
            ProofStatus.UNPROVEN,
            "no new boot identity",
        ),
        (
            "another machine is off",
            Story().done(10, "poweroff").host(15, "machine", "off", node="n2"),
            ProofStatus.UNPROVEN,
            "no power control",
        ),
        (
            "off only after a kubelet restart",
            Story().done(10, "poweroff").done(12, "kubelet-restart").host(15, "machine", "off"),
            ProofStatus.PROVEN,
            "was off 5.0 s after the step",
        ),
        (
            "cancelled on purpose",
            Story().done(10, "poweroff").node(11, "n1", "False", "node is shutting down").done(14, "cancel-shutdown"),
            ProofStatus.PROVEN,
            "until that was cancelled",
        ),
        (
            "announced only",
            Story().done(10, "poweroff").node(11, "n1", "False", "node is shutting down"),
            ProofStatus.UNPROVEN,
            "no power control",
        ),
    ],
)
def test_proofs_of_a_power_off(what: str, story: Story, expected: ProofStatus, because: str) -> None:
    story.node(0, "n1")
    result = run(story, method="[{name: stop, action: poweroff, target: victim}]")
    step = result.steps[0]
    assert (step.proof_status, because in step.because) == (expected, True), f"{what}: {step.because}"
    if expected is not ProofStatus.PROVEN:
        assert result.exit_code == 2
        assert {v.status for v in result.hypothesis} == {INCONCLUSIVE}


def test_weak_proof_counts_and_is_marked_weak() -> None:
    story = Story().node(0, "n1")
    for t, active in ((10, True), (20, False)):
        story.done(t, "prepare-for-shutdown", params={"active": active})
    result = run(story.node(11, "n1", "False"), method=SIGNALS)
    assert [(s.proof_status, s.weak) for s in result.steps] == [(ProofStatus.PROVEN, True), (ProofStatus.PROVEN, True)]
    assert result.exit_code == 0, result.headline


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"machine": "off"}, ProofStatus.PROVEN),
        ({"vm": "deleted"}, ProofStatus.PROVEN),
        ({"machine": "on"}, ProofStatus.DISPROVEN),
    ],
)
def test_action_outside_the_registry(evidence: dict[str, str], expected: ProofStatus) -> None:
    story = Story().node(0, "n1").done(10, "kill-vm").act(12, "kill-vm", "proved", evidence=evidence)
    result = run(
        story, method="[{name: stop, action: poweroff, target: victim}]", options=Options(steps={"stop": "kill-vm"})
    )
    assert [s.proof_status for s in result.steps] == [expected]


@pytest.mark.parametrize(
    ("what", "actions", "begins"),
    [
        ("in order", [(10, True), (18, False)], [10, 18]),
        ("others between", [(10, True), (12, True), (18, False)], [10, 18]),
        ("distinguished by parameters", [(5, False), (10, True), (18, False)], [10, 18]),
        ("wrong order", [(10, False), (18, True)], [18, None]),
        ("the second is missing", [(10, True)], [10, None]),
        ("none", [], [None, None]),
    ],
)
def test_matching(what: str, actions: list[tuple[float, bool]], begins: list[float | None]) -> None:
    story = Story().node(0, "n1")
    for t, active in actions:
        story.done(t, "prepare-for-shutdown", params={"active": active, "extra": "is ignored"})
    result = run(story, method=SIGNALS)
    found = [None if s.begin is None else s.begin - story.lines[0].t for s in result.steps]
    assert found == begins, what
    if None in begins:
        assert result.exit_code == 2
        assert re.fullmatch(r"1 of 1 inconclusive: Step \w+ is not in the recording", result.headline)
        assert "is missing: the recording has no prepare-for-shutdown with active=" in details(result)


def test_target_is_bound_to_the_node_of_its_actions() -> None:
    story = Story().node(0, "n1").node(0, "n2").done(10, "poweroff", node="n2").host(11, "machine", "off", node="n2")
    result = run(story.node(11, "n2", "False"), method="[{name: stop, action: poweroff, target: victim}]")
    assert result.targets == {"victim": ("n2",)}
    assert result.exit_code == 0


def test_two_targets_are_bound_to_two_nodes() -> None:
    story = (
        Story().node(0, "n1").node(0, "n2").done(10, "poweroff", node="n2", step="a").done(11, "poweroff", node="n2")
    )
    story.done(12, "poweroff", node="n1", step="b").host(15, "machine", "off", "n1").host(15, "machine", "off", "n2")
    method = "[{name: a, action: poweroff, target: first}, {name: b, action: poweroff, target: second}]"
    targets = {"first": {"role": "worker"}, "second": {"role": "worker"}}
    expectation = "[{assert: nodes-ready, with: {nodes: all}, within: 5s}]"
    assert run(story, hypothesis=expectation, method=method, targets=targets).targets == {
        "first": ("n2",),
        "second": ("n1",),
    }


def test_targets_recorded_by_the_run() -> None:
    story = stopped(targets={"n2": "victim"}).done(50, "poweroff", node="n2", step="stop")
    result = run(story, method="[{name: stop, action: poweroff, target: victim}]")
    assert result.targets == {"victim": ("n2",)}
    assert result.steps[0].node == "n2"


def test_other_actions_have_a_note() -> None:
    result = run(stopped().done(30, "patch", node="n2", step="relax"))
    assert result.notes == ("the recorded action patch (relax) on n2 is not a step of the experiment",)


def test_truncated_recording_has_a_note() -> None:
    story = stopped().blind(100, None, "recording", "the file ends before its end mark")
    assert "the recording is truncated: the file ends before its end mark" in run(story).notes


def test_a_lost_proof_has_a_note() -> None:
    story = stopped()
    for t in range(1, 100):
        story.current(t, "nodes").current(t, "pods", ["late"] if 20 <= t < 50 else [])
    (note,) = run(story).notes
    assert note == (
        "no proof that pods were fresh from 08:00:19 to 08:00:50 UTC: the times of their changes are uncertain"
    )


def test_a_first_proof_without_some_objects_has_a_note_from_the_start() -> None:
    story = stopped().current(1, "pods", ["late"])
    for t in range(2, 100):
        story.current(t, "pods", ["late"] if t < 50 else [])
    notes = [note for note in run(story).notes if note.startswith("no proof that pods were fresh")]
    assert notes == [
        "no proof that pods were fresh from 08:00:00 to 08:00:50 UTC: the times of their changes are uncertain"
    ]


def test_unmet_requirement() -> None:
    story = stopped().host(1, "configz", {"shutdownGracePeriod": "0s"})
    result = run(story, requires={"kubelet": {"shutdownGracePeriod": ">0"}})
    assert result.exit_code == 2
    assert result.sentence == "Node n1 does not meet the requirements of the experiment"
    assert "requires kubelet.shutdownGracePeriod >0, but n1 has 0s" in details(result)


@pytest.mark.parametrize(
    ("value", "test", "expected"),
    [
        (30, ">0", True),
        (0, ">0", False),
        (30, ">= 30s", True),
        (29, ">=30s", False),
        (30, "30s", True),
        (1, "!=1", False),
    ],
)
def test_requirements(value: float, test: str, expected: bool) -> None:
    assert satisfies(value, test) is expected


def test_simulated_cluster_is_marked() -> None:
    assert run(stopped(simulated=True)).simulated


def test_proof_with_an_error_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_timeline: Timeline, _step: StepRun) -> ProofResult:
        raise KeyError("x")

    actions = cast("dict[str, AnyAction]", plugin_registry().actions)
    monkeypatch.setitem(actions, "poweroff", replace(actions["poweroff"], proofs=(Proof("machine-off", broken),)))
    result = run(stopped())
    assert result.exit_code == 2
    assert result.sentence == "No proof that step stop took effect on n1"
    assert "the proof machine-off failed: KeyError" in details(result)


CUT = "[{name: cut, action: partition, target: victim, with: {from: control-plane%s}}]"


@pytest.mark.parametrize(
    ("what", "before", "after", "expected"),
    [
        ("closed", {"ipv4": True, "ipv6": True}, {"ipv4": False, "ipv6": False}, ProofStatus.PROVEN),
        ("one is open", {"ipv4": True, "ipv6": True}, {"ipv4": False, "ipv6": True}, ProofStatus.DISPROVEN),
        ("one was not tried", {"ipv4": True, "ipv6": True}, {"ipv4": False}, ProofStatus.UNPROVEN),
        ("one never worked", {"ipv4": True, "ipv6": False}, {"ipv4": False}, ProofStatus.PROVEN),
        ("single stack", None, {"ipv4": False}, ProofStatus.PROVEN),
        ("not tried at all", None, {}, ProofStatus.UNPROVEN),
        ("unknown", None, {"ipv4": None}, ProofStatus.UNPROVEN),
        ("unknown format", "yes", "no", ProofStatus.UNPROVEN),
    ],
)
def test_proofs_of_a_partition(what: str, before: Any, after: Any, expected: ProofStatus) -> None:
    """The API must be unreachable over every address family over which it was reachable before."""
    story = Story().node(0, "n1").done(10, "partition", params={"from": "control-plane"})
    story.host(14, "api-reachable", after)
    if before is not None:
        story.host(5, "api-reachable", before)
    result = run(story, method=CUT % "")
    assert result.steps[0].proof_status is expected, f"{what}: {result.steps[0].because}"


BOTH_FAMILIES = {"ipv4": True, "ipv6": True}
NO_FAMILY = {"ipv4": False, "ipv6": False}


def partitioned(params: dict[str, Any] | None = None) -> Story:
    given = {"from": "control-plane", "duration": "100s"} | (params or {})
    story = Story().node(0, "n1").done(10, "partition", params=given)
    return story.host(5, "api-reachable", BOTH_FAMILIES).host(5, "nft-rules", False)


def test_reading_from_before_the_partition_disproves_nothing() -> None:
    story = partitioned().host(10.5, "api-reachable", BOTH_FAMILIES).host(10.6, "nft-rules", False)
    story.host(16, "api-reachable", NO_FAMILY).host(16, "nft-rules", {"packets": 4})
    assert run(story, method=CUT % "").steps[0].proof_status is ProofStatus.PROVEN


@pytest.mark.parametrize("params", [{}, {"from": "cidr", "cidrs": ["10.0.0.0/8"]}])
def test_early_removal_of_the_rules_disproves_a_partition(params: dict[str, Any]) -> None:
    """Many firewalls run ``nft flush ruleset`` when they are reloaded."""
    story = partitioned(params).host(14, "nft-rules", {"packets": 4}).host(14, "api-reachable", NO_FAMILY)
    method = CUT % "" if not params else "[{name: cut, action: partition, target: victim}]"
    assert run(story, method=method).steps[0].proof_status is ProofStatus.PROVEN
    result = run(story.host(50, "nft-rules", False).host(51, "api-reachable", NO_FAMILY), method=method)
    assert (result.steps[0].proof_status, result.exit_code) == (ProofStatus.DISPROVEN, 2)
    assert "no rules of nodefall" in result.steps[0].because


@pytest.mark.parametrize(
    ("renewals", "expected"), [([], ProofStatus.PROVEN), ([14], ProofStatus.PROVEN), ([20, 30], ProofStatus.DISPROVEN)]
)
def test_kubelet_that_renews_its_lease_is_not_partitioned(renewals: list[float], expected: ProofStatus) -> None:
    """The kubelet may be connected to a control plane node that was unknown when the rules were made."""
    story = partitioned().host(16, "api-reachable", NO_FAMILY).host(16, "nft-rules", {"packets": 4})
    for t in (1, 9, *renewals, 115, 125):  # the last two after the end of the partition
        story.add(t, "leases", "MODIFIED", {"metadata": {"name": "n1"}, "spec": {"renewTime": stamp(t)}})
    assert run(story, method=CUT % "").steps[0].proof_status is expected


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("duration: 100s", True),
        ("duration: 1m40s", True),
        ("duration: 99s", False),
        ("families: [ipv6, ipv4]", True),
        ("families: [ipv4]", False),
        ("direction: both", False),
    ],
)
def test_parameters_match_in_any_notation(written: str, found: bool) -> None:
    params = {"from": "control-plane", "duration": "100s", "families": ["ipv4", "ipv6"]}
    story = Story().node(0, "n1").done(10, "partition", params=params)
    assert (run(story, method=CUT % f", {written}").steps[0].begin is not None) is found


def test_duplicate_entries_change_nothing() -> None:
    story = stopped()
    story.lines += story.lines[1:]
    result = run(story)
    assert (result.exit_code, result.notes) == (0, ()), result.headline


@pytest.mark.parametrize("groups", ["x", ["x"], [{"shutdownGracePeriodSeconds": []}]])
def test_kubelet_configuration_of_unknown_format(groups: Any) -> None:
    story = stopped().host(1, "configz", {"shutdownGracePeriodByPodPriority": groups})
    expectation = NOT_READY.replace("5s", "kubelet.shutdownGracePeriod")
    assert run(story, hypothesis=expectation).exit_code == 2


@pytest.mark.parametrize(
    ("what", "source", "node", "window", "status"),
    [
        ("by its name", "nodes", "", {"from": 10.5, "to": 30}, INCONCLUSIVE),
        ("never closed", "nodes", "", {"from": 10.5}, INCONCLUSIVE),
        ("everything, by an unknown source", "kube-apiserver", "", {"from": 10.5, "to": 30}, INCONCLUSIVE),
        ("unknown duration", "nodes", "", {"since": 10.5}, INCONCLUSIVE),
        ("something else", "pods", "", {"from": 10.5, "to": 30}, HELD),
        ("something else on a node", "metrics", "n1", {"from": 10.5, "to": 30}, HELD),
    ],
)
def test_blind_windows_of_any_recorder(
    what: str, source: str, node: str, window: dict[str, float], status: Status
) -> None:
    times = {key: T0 + t for key, t in window.items()}
    result = run(stopped().add(10.5, "blind", source, times, node=node))
    assert result.hypothesis[0].status is status, f"{what}: {result.headline}"


def test_blind_window_of_metrics_without_a_node_covers_all_nodes() -> None:
    assert BlindWindow(0, 1, "", "metrics").covers("metrics@n1")
    assert not BlindWindow(0, 1, "", "metrics@n2").covers("metrics@n1")
    assert not BlindWindow(0, 1, "", TRUNCATED_RECORDING).covers("pods")


def test_what_was_decided_before_an_interruption_stays_decided() -> None:
    """A run that is stopped at 30, before its second step; the undo then powers the machine on."""
    story = Story().node(0, "n1").node(0, "n2").done(10, "poweroff", step="stop").node(11, "n1", "False")
    story.host(15, "machine", "off").add(30, "meta", "recording", {"format": 1, "interruptedAt": T0 + 30})
    story.act(31, "poweroff", "undo", step="stop").host(34, "machine", "on").act(35, "poweroff", "undone", step="stop")
    late = NOT_READY.replace("5s", "500ms")[1:-1]
    stays = 'assert: node-condition, with: {node: n2, status: "True"}, always: '
    questions = ["{name: open, " + stays + "true}", "{name: until, " + stays + "{until: start}}"]
    questions += ['{name: later, assert: node-condition, with: {node: victim, status: "True"}, within: 60s, for: 5s}']
    hypothesis = f"[{NOT_READY[1:-1]}, {late}, {', '.join(questions)}]"
    result = run(story.node(45, "n1", boot_id="next"), 100, hypothesis, recovery={"within": "60s"})
    assert [v.status for v in result.hypothesis] == [HELD, VIOLATED, *[INCONCLUSIVE] * 3]
    assert [v.because for v in (*result.hypothesis[2:], *result.recovery)] == [
        "not judged: the run was interrupted first"
    ] * 4


def test_an_interrupted_run_whose_step_is_not_proven_decides_nothing() -> None:
    story = Story().node(0, "n1").node(0, "n2").done(10, "poweroff", step="stop").node(11, "n1", "False")
    result = run(story.add(30, "meta", "recording", {"format": 1, "interruptedAt": T0 + 30}))
    assert result.hypothesis[0].status is INCONCLUSIVE
    assert "nothing proves that 'stop' took effect" in result.hypothesis[0].because
    assert result.headline == "1 of 1 inconclusive: No proof that step stop took effect on n1"

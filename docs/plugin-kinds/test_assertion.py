"""Assertion ``my-plugin``, on recordings made by hand: seconds after their start, and what happened."""

from nodefall_my_plugin import ASSERTION

from chaos.testing import RecordingBuilder, check_assertion, judge_assertion

TAINT = ["maintenance:NoSchedule"]


def recording(taints: list[str]) -> RecordingBuilder:
    """The victim has these taints, and is powered off after 10 s."""
    started = RecordingBuilder().node(0, "n1", taints=taints).done(10, "poweroff", step="poweroff")
    return started.host(15, "machine", "off").node(60, "n1", "Unknown", taints=taints, heartbeat=5)


def test_it_keeps_the_contract_of_assertions() -> None:
    check_assertion(ASSERTION, recording(TAINT), end=70)


def test_a_node_without_the_taint_violates_it() -> None:
    verdict = judge_assertion(ASSERTION, ASSERTION.example, recording([]), end=70)
    assert verdict.status == "violated", verdict.because

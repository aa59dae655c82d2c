"""Proofs of latency and packet-loss by pings: proven, disproven, not decided, ended too early."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.judge.context import Options
from chaos.judge.judge import judge
from chaos.model.action import ProofStatus
from tests.kit.story import Story, experiment, plugin_registry

PROVEN, DISPROVEN, UNPROVEN = ProofStatus.PROVEN, ProofStatus.DISPROVEN, ProofStatus.UNPROVEN
LOADED = {"interface": "eth0", "passed": 1, "dropped": 1}
PARAMS: dict[str, dict[str, Any]] = {"latency": {"delay": "200ms"}, "packet-loss": {"percent": 30}}


def pings(sent: int, received: int, mean: float = 0.001, kind: str = "control-plane") -> dict[str, Any]:
    return {kind: {"address": "10.0.0.1", "sent": sent, "received": received, "mean": mean if received else -1.0}}


def proof(action: str, before: Any, *after: Any, ended: bool = False, **more: Any) -> tuple[ProofStatus, str]:
    params = PARAMS[action] | more
    story = Story().node(0, "n1").done(10, action, params=params)
    if before is not None:
        story.host(5, "round-trips", before)
    for number, value in enumerate(after):
        story.host(20 + 5 * number, "round-trips", value, since=15 + 5 * number).host(
            20.5 + 5 * number, "netem", LOADED
        )
    if ended:
        story.host(60, "netem", False)
    method = f"[{{name: do, action: {action}, target: victim, with: {params}}}]"
    (step,) = judge(experiment(method=method), story.timeline(300), plugin_registry(), Options()).steps
    return step.proof_status, step.because


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (pings(10, 10), [pings(10, 7), pings(10, 6)], PROVEN),
        (pings(10, 10), [pings(10, 0)], PROVEN),
        (pings(10, 10), [pings(10, 10)], UNPROVEN),  # by chance in 3 of 100 cases
        (pings(10, 10), [pings(100, 100)], DISPROVEN),
        (pings(10, 10), [pings(100, 96)], DISPROVEN),
        (pings(10, 10), [pings(5, 3)], UNPROVEN),  # too few
        (pings(10, 8), [pings(10, 7)], UNPROVEN),  # as before
        (None, [pings(10, 7)], PROVEN),
        (pings(10, 10), [pings(10, 7, kind="nodes")], UNPROVEN),
        (pings(10, 10), [], UNPROVEN),
    ],
)
def test_loss(before: Any, after: list[Any], expected: ProofStatus) -> None:
    status, because = proof("packet-loss", before, *after)
    assert status is expected, because


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (pings(10, 10), [pings(10, 10, 0.2043)], PROVEN),
        (pings(10, 10, 0.15), [pings(10, 10, 0.35)], PROVEN),
        (pings(10, 10), [pings(10, 10, 0.09)], DISPROVEN),
        (pings(10, 10, 0.15), [pings(10, 10, 0.2)], DISPROVEN),
        (pings(10, 10), [pings(10, 10, 0.14)], UNPROVEN),
        (pings(10, 10), [pings(10, 0)], UNPROVEN),
        (None, [pings(10, 10, 0.2043)], UNPROVEN),
    ],
)
def test_latency(before: Any, after: list[Any], expected: ProofStatus) -> None:
    status, because = proof("latency", before, *after)
    assert status is expected, because


def test_figures_are_in_the_reason() -> None:
    assert "3 of 10 pings of n1 were lost (30.0 %, asked 30 %)" in proof("packet-loss", None, pings(10, 7))[1]
    because = proof("latency", pings(10, 10), pings(10, 10, 0.2043))[1]
    assert because == "round trips of n1 took 204.3 ms, 1.0 ms before (asked 200 ms more)"


@pytest.mark.parametrize("action", sorted(PARAMS))
def test_an_early_end_disproves(action: str) -> None:
    shown = pings(10, 7, 0.25)
    assert proof(action, pings(10, 10), shown, ended=True)[0] is DISPROVEN
    assert proof(action, pings(10, 10), shown, ended=True, duration="30s")[0] is PROVEN
    # The host is armed before the step, so that its timer may elapse earlier.
    assert proof(action, pings(10, 10), shown, ended=True, duration="55s")[0] is PROVEN
    assert proof(action, pings(10, 10), shown, ended=True, duration="65s")[0] is DISPROVEN


def test_pings_that_began_before_the_step_do_not_count() -> None:
    story = Story().node(0, "n1").host(5, "round-trips", pings(10, 10)).done(10, "packet-loss", params={"percent": 30})
    story.host(12, "round-trips", pings(10, 5), since=9)
    method = "[{name: do, action: packet-loss, target: victim, with: {percent: 30}}]"
    (step,) = judge(experiment(method=method), story.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is UNPROVEN

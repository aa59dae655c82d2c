"""Proofs of latency, loss, corruption, duplicates and bandwidth: proven, disproven, neither, ended too early."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.faults.actions._peer_params import measuring_fact
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import Story, experiment, plugin_registry

PROVEN, DISPROVEN, UNPROVEN = ProofStatus.PROVEN, ProofStatus.DISPROVEN, ProofStatus.UNPROVEN
LOADED = {"interface": "eth0", "passed": 1, "dropped": 1}
NONE_DROPPED = LOADED | {"dropped": 0}
PARAMS: dict[str, dict[str, Any]] = {
    "bandwidth": {"rate": "1mbit"},
    "latency": {"delay": "200ms"},
    "packet-corrupt": {"percent": 30},
    "packet-duplicate": {"percent": 30},
    "packet-loss": {"percent": 30},
}


def pings(
    sent: int,
    received: int,
    mean: float = 0.001,
    kind: str = "control-plane",
    longest: float = 0.002,
    twice: int = 0,
    address: str | None = "10.0.0.1",
) -> dict[str, Any]:
    times = {"mean": mean, "longest": longest} if received else {"mean": -1.0, "longest": -1.0}
    counts = {"sent": sent, "received": received, "duplicates": twice}
    return {kind: ({"address": address} if address else {}) | counts | times}


def proof(
    action: str, before: Any, *after: Any, ended: bool = False, loaded: Any = LOADED, **more: Any
) -> tuple[ProofStatus, str]:
    params = PARAMS[action] | more
    fact = measuring_fact("ping-bursts" if action == "bandwidth" else "round-trips", params)
    story = Story().node(0, "n1").done(10, action, params=params)
    if before is not None:
        story.host(5, fact, before)
    for number, value in enumerate(after):
        story.host(20 + 5 * number, fact, value, since=15 + 5 * number).host(20.5 + 5 * number, "netem", loaded)
    if ended:
        story.host(60, "netem", False)
    method = f"[{{name: do, action: {action}, target: victim, with: {params}}}]"
    (step,) = judge(experiment(method=method), story.timeline(300), plugin_registry(), Options()).steps
    return step.proof_status, step.because


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (pings(10, 10), [pings(10, 7), pings(10, 6)], PROVEN),
        (pings(10, 10), [pings(10, 0)], UNPROVEN),  # far too many
        (pings(10, 10), [pings(10, 1)], UNPROVEN),
        (pings(100, 100), [pings(100, 10)], UNPROVEN),
        (pings(100, 100), [pings(100, 50)], UNPROVEN),
        (pings(100, 100), [pings(100, 58)], PROVEN),
        (pings(1000, 1000), [pings(5000, 3500)], PROVEN),
        (pings(1000, 1000), [pings(5000, 3300)], UNPROVEN),
        (pings(1000, 1000), [pings(5000, 3700)], DISPROVEN),
        (pings(1000, 920), [pings(1000, 644)], PROVEN),  # 8 % before: 35.6 % are 30 % of the rest
        (pings(1000, 920), [pings(1000, 700)], UNPROVEN),  # only 24 % of the rest
        (pings(10, 10), [pings(100, 84)], UNPROVEN),  # too few, but not for sure
        (pings(10, 10), [pings(10, 10)], UNPROVEN),  # by chance in 3 of 100 cases
        (pings(10, 10), [pings(100, 100)], DISPROVEN),
        (pings(10, 10), [pings(100, 96)], DISPROVEN),
        (pings(10, 10), [pings(5, 3)], UNPROVEN),  # too few
        (pings(10, 8), [pings(10, 7)], UNPROVEN),  # as before
        (None, [pings(10, 7)], UNPROVEN),  # it may be usual
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
        (pings(10, 10), [pings(10, 10, 0.8)], PROVEN),  # a busy network
        (pings(10, 10), [pings(10, 10, 0.802)], UNPROVEN),  # something else is late
        (pings(10, 10), [pings(10, 10, 0.2), pings(10, 10, 5.0)], UNPROVEN),
        (pings(10, 10, 0.7), [pings(10, 10, 1.4)], PROVEN),  # a rise is what counts
        (pings(10, 10), [pings(10, 0)], UNPROVEN),
        (None, [pings(10, 10, 0.2043)], UNPROVEN),
    ],
)
def test_latency(before: Any, after: list[Any], expected: ProofStatus) -> None:
    status, because = proof("latency", before, *after)
    assert status is expected, because


def test_figures_are_in_the_reason() -> None:
    lost = "3 of 10 pings of n1 were lost (30.0 %, asked 30 %)"
    assert proof("packet-loss", None, pings(10, 7))[1] == f"{lost}, and no pings before the step show what is usual"
    assert proof("packet-loss", pings(20, 20), pings(10, 7))[1] == f"{lost}, 0 of 20 before"
    because = "90 of 100 pings of n1 were lost (90.0 %, asked 30 %), 0 of 20 before: more than chance explains"
    assert proof("packet-loss", pings(20, 20), pings(100, 10))[1] == because
    because = proof("latency", pings(10, 10), pings(10, 10, 0.2043))[1]
    assert because == "round trips of n1 took 204.3 ms, 1.0 ms before (asked 200 ms more)"


@pytest.mark.parametrize(
    ("after", "loaded", "expected"),
    [
        ([pings(10, 7), pings(10, 6)], NONE_DROPPED, PROVEN),
        ([pings(100, 97)], NONE_DROPPED, DISPROVEN),
        ([pings(10, 7), pings(10, 6)], LOADED, UNPROVEN),  # netem dropped them
        ([pings(10, 10)], NONE_DROPPED, UNPROVEN),
    ],
)
def test_corruption(after: list[Any], loaded: Any, expected: ProofStatus) -> None:
    status, because = proof("packet-corrupt", pings(10, 10), *after, loaded=loaded)
    assert status is expected, because


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (pings(10, 10), [pings(10, 10, twice=4), pings(10, 10, twice=3)], PROVEN),
        (pings(10, 10), [pings(10, 10, twice=10)], UNPROVEN),  # far too many
        (pings(10, 10), [pings(10, 10, twice=30)], UNPROVEN),
        (pings(10, 10), [pings(100, 100, twice=3)], DISPROVEN),
        (pings(10, 10), [pings(100, 60)], DISPROVEN),  # lost ones are no duplicates
        (pings(10, 10), [pings(10, 10)], UNPROVEN),
        (pings(10, 10, twice=3), [pings(10, 10, twice=4)], UNPROVEN),
    ],
)
def test_duplicates(before: Any, after: list[Any], expected: ProofStatus) -> None:
    status, because = proof("packet-duplicate", before, *after)
    assert status is expected, because


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0.005, 0.25, PROVEN),
        (0.005, 9.0, PROVEN),  # others share it
        (0.005, 0.15, UNPROVEN),
        (0.005, 0.1, DISPROVEN),
        (0.2, 0.25, UNPROVEN),  # no more passed before
    ],
)
def test_bandwidth(before: float, after: float, expected: ProofStatus) -> None:
    status, because = proof("bandwidth", pings(25, 25, longest=before), pings(25, 25, longest=after))
    assert status is expected, because
    assert proof("bandwidth", None, pings(25, 25, longest=after))[0] is not PROVEN
    assert proof("bandwidth", pings(25, 25), pings(25, 24, longest=after))[0] is UNPROVEN


@pytest.mark.parametrize("action", sorted(PARAMS))
def test_what_netem_has_not_seen_it_did_not_hit(action: str) -> None:
    """As pings that are late or lost for another reason."""
    shown = pings(25, 17, 0.25, longest=0.25, twice=9) if action != "bandwidth" else pings(25, 25, longest=0.25)
    assert proof(action, pings(25, 25), shown, loaded=NONE_DROPPED)[0] is PROVEN
    status, because = proof(action, pings(25, 25), shown, loaded=LOADED | {"passed": 0, "dropped": 0})
    assert (status, because) == (UNPROVEN, "no packet of n1 was seen in the queueing discipline of nodefall")


def test_two_directions_are_felt_twice() -> None:
    both: dict[str, Any] = {"direction": "both"}
    assert proof("latency", pings(10, 10), pings(10, 10, 0.2043), **both)[0] is UNPROVEN
    assert proof("latency", pings(10, 10), pings(10, 10, 0.401), **both)[0] is PROVEN
    assert proof("packet-loss", pings(10, 10), pings(100, 78), **both)[0] is DISPROVEN
    assert proof("packet-loss", pings(10, 10), pings(100, 51), **both)[0] is PROVEN
    # A ping that is doubled on both ways has three duplicates.
    assert proof("packet-duplicate", pings(10, 10), pings(100, 100, twice=69), **both)[0] is PROVEN


def test_pings_of_the_networks_and_the_family_count() -> None:
    networks: dict[str, Any] = {"from": "cidr", "cidrs": ["10.7.0.0/16"]}
    usual = pings(20, 20, kind="cidr")
    assert proof("packet-loss", usual, pings(10, 6, kind="cidr"), **networks)[0] is PROVEN
    assert proof("packet-loss", usual, pings(10, 6), **networks)[0] is UNPROVEN
    assert proof("packet-loss", pings(20, 20), pings(10, 6), families=["ipv6"])[0] is PROVEN


@pytest.mark.parametrize("action", ["latency", "packet-loss"])
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


ZONES: dict[str, Any] = {"from": "other-zones"}


def zones(far: dict[str, Any], near: dict[str, Any] | None) -> dict[str, Any]:
    """Pings to another zone, and to the own one."""
    found = {"other-zones": far["control-plane"]}
    return found | ({"own-zone": near["control-plane"]} if near else {})


@pytest.mark.parametrize(
    ("action", "hit", "free", "doubt"),
    [
        ("packet-loss", pings(100, 70), pings(100, 100), "its own zone was hit too"),
        ("packet-corrupt", pings(100, 72), pings(100, 100), "its own zone was hit too"),
        ("packet-duplicate", pings(100, 100, twice=30), pings(100, 100), "its own zone was hit too"),
        ("latency", pings(10, 10, 0.2043), pings(10, 10), "its own zone was late too"),
        ("bandwidth", pings(25, 25, longest=0.25), pings(25, 25, longest=0.005), "its own zone was not faster"),
    ],
)
def test_the_own_zone_is_not_hit(action: str, hit: Any, free: Any, doubt: str) -> None:
    """Where there is no other node in it, the filters alone show that."""
    usual = pings(25, 25, longest=0.005)
    for near in (free, None):
        before, after = zones(usual, usual if near else None), zones(hit, near)
        assert proof(action, before, after, loaded=NONE_DROPPED, **ZONES)[0] is PROVEN
    status, because = proof(action, zones(usual, usual), zones(hit, hit), loaded=NONE_DROPPED, **ZONES)
    assert (status, because.rpartition(": ")[2]) == (UNPROVEN, doubt)
    assert "to its own zone" in because


def test_a_node_of_the_own_zone_that_was_down_before_shows_nothing() -> None:
    usual, hit, down = pings(100, 100), pings(100, 70), pings(100, 0)
    status, because = proof("packet-loss", zones(usual, down), zones(hit, down), **ZONES)
    assert status is PROVEN
    assert "own zone" not in because
    assert proof("packet-loss", zones(usual, usual), zones(hit, down), **ZONES)[0] is UNPROVEN


def test_another_zone_that_is_not_hit_disproves() -> None:
    """Also if the own one is."""
    usual, hit = pings(100, 100), pings(100, 70)
    assert proof("packet-loss", zones(usual, usual), zones(usual, hit), **ZONES)[0] is DISPROVEN
    assert proof("packet-loss", zones(usual, usual), zones(hit, pings(100, 95)), **ZONES)[0] is PROVEN
    assert proof("packet-loss", zones(usual, usual), {"own-zone": hit["control-plane"]}, **ZONES)[0] is UNPROVEN


@pytest.mark.parametrize(
    ("action", "hit", "spared"),
    [
        ("packet-loss", pings(100, 70), pings(100, 100, address="10.0.0.0")),
        ("packet-corrupt", pings(100, 72), pings(100, 100, address="10.0.0.0")),
        ("packet-duplicate", pings(100, 100, twice=30), pings(100, 100, address="10.0.0.0")),
        ("latency", pings(10, 10, 0.2043), pings(10, 10, address="10.0.0.0")),
        ("bandwidth", pings(25, 25, longest=0.25), pings(25, 25, address="10.0.0.0")),
    ],
)
def test_pings_to_another_peer_than_before_do_not_count(action: str, hit: Any, spared: Any) -> None:
    """As to a node that is new, and the first one in the list, but in no filter."""
    usual = pings(25, 25)
    status, because = proof(action, usual, spared, loaded=NONE_DROPPED)
    assert (status, because) == (UNPROVEN, "no pings of n1 to 10.0.0.1 were seen after the step")
    assert proof(action, usual, hit, spared, spared, loaded=NONE_DROPPED)[0] is PROVEN
    assert proof(action, usual, pings(100, 100), loaded=NONE_DROPPED)[0] is DISPROVEN
    unnamed = pings(100, 100, address=None)  # of another recorder
    assert proof(action, usual, unnamed, loaded=NONE_DROPPED)[0] is DISPROVEN
    assert proof(action, unnamed, spared, loaded=NONE_DROPPED)[0] is DISPROVEN


def test_what_is_usual_is_that_of_the_last_peer_before() -> None:
    story = Story().node(0, "n1").done(10, "packet-loss", params={"percent": 30})
    story.host(4, "round-trips", pings(10, 0, address="10.0.0.0")).host(5, "round-trips", pings(100, 100))
    story.host(20, "round-trips", pings(100, 70), since=15).host(20.5, "netem", LOADED)
    method = "[{name: do, action: packet-loss, target: victim, with: {percent: 30}}]"
    (step,) = judge(experiment(method=method), story.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is PROVEN
    assert step.because.endswith(", 0 of 100 before")


def test_pings_to_another_node_of_the_own_zone_than_before_do_not_count() -> None:
    """As to one that has been moved there, and is still in a filter."""
    usual, hit = pings(100, 100), pings(100, 70)
    moved = pings(100, 70, address="10.0.0.0")
    status, because = proof("packet-loss", zones(usual, usual), zones(hit, moved), **ZONES)
    assert (status, "own zone" in because) == (PROVEN, False)


@pytest.mark.parametrize(
    ("sent", "lost", "expected"), [(60, 0, PROVEN), (60, 1, PROVEN), (60, 2, UNPROVEN), (1000, 14, PROVEN)]
)
def test_one_loss_to_the_own_zone_is_chance(sent: int, lost: int, expected: ProofStatus) -> None:
    usual, hit = pings(100, 100), pings(60, 57)
    status, because = proof(
        "packet-loss", zones(usual, usual), zones(hit, pings(sent, sent - lost)), percent=5, **ZONES
    )
    assert status is expected, because
    # One before the step is no reason not to look at it.
    status, _ = proof(
        "packet-loss", zones(usual, pings(10, 9)), zones(hit, pings(sent, sent - lost)), percent=5, **ZONES
    )
    assert status is expected


@pytest.mark.parametrize(
    ("action", "hit", "slow"),
    [
        ("packet-loss", pings(100, 70), None),
        ("latency", pings(10, 10, 0.2043), None),
        ("latency", pings(10, 10, 0.2043), pings(10, 0)),
        ("latency", pings(10, 10, 0.2043), pings(10, 10, 0.2043)),
        ("bandwidth", pings(25, 25, longest=0.25), None),
        ("bandwidth", pings(25, 25, longest=0.25), pings(25, 24)),
        ("bandwidth", pings(25, 25, longest=0.25), pings(25, 25, longest=0.25)),
    ],
)
def test_an_own_zone_that_was_not_better_before_shows_nothing(action: str, hit: Any, slow: Any) -> None:
    usual = pings(25, 25, longest=0.005)
    status, because = proof(action, zones(usual, slow), zones(hit, hit), **ZONES)
    assert status is PROVEN, because
    assert proof(action, zones(usual, usual), zones(hit, hit), **ZONES)[0] is UNPROVEN

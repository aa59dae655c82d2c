"""Proofs of dns-failure, mtu and partition: proven, disproven, neither, ended too early."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.action import ProofStatus
from chaos.core.fact import FactRef
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import T0, Story, experiment, plugin_registry

PROVEN, DISPROVEN, UNPROVEN = ProofStatus.PROVEN, ProofStatus.DISPROVEN, ProofStatus.UNPROVEN
LOOKUP, PINGS = "dns-lookup?name=kubernetes.io", "mtu-pings?size=1280"
FACT = "round-trips?by=zone"


def proof(action: str, fact: str, before: Any, after: list[Any], rules: Any, **params: Any) -> ProofStatus:
    story = Story().node(0, "n1").done(10, action, params=params)
    if before is not None:
        story.host(5, fact, before)
    for number, value in enumerate(after):
        story.host(20 + 5 * number, fact, value, since=19 + 5 * number)
    story.host(40, "nft-rules", rules)
    method = f"[{{name: do, action: {action}, target: victim, with: {params}}}]"
    (step,) = judge(experiment(method=method), story.timeline(300), plugin_registry(), Options()).steps
    return step.proof_status


@pytest.mark.parametrize(
    ("before", "after", "rules", "params", "expected"),
    [
        (True, [False], {"packets": 4}, {}, PROVEN),
        (True, [False, True], {"packets": 4}, {}, PROVEN),
        (True, [True], {"packets": 0}, {}, DISPROVEN),
        (True, [False], {"packets": 0}, {}, UNPROVEN),  # the server does not answer
        (False, [False], {"packets": 4}, {}, UNPROVEN),
        (None, [False], {"packets": 4}, {}, UNPROVEN),
        (True, [], {"packets": 4}, {}, UNPROVEN),
        (True, [False], False, {}, DISPROVEN),
        (True, [True], {"packets": 4}, {"traffic": "pods"}, PROVEN),
        (True, [True], {"packets": 0}, {"traffic": "pods"}, UNPROVEN),
    ],
)
def test_lookups(
    before: bool | None, after: list[bool], rules: Any, params: dict[str, Any], expected: ProofStatus
) -> None:
    assert proof("dns-failure", LOOKUP, before, after, rules, **params) is expected


def pings(small: int, large: int, kind: str = "control-plane", address: str | None = "10.0.0.1") -> dict[str, Any]:
    return {kind: ({"address": address} if address else {}) | {"small": small, "large": large}}


@pytest.mark.parametrize(
    ("before", "after", "rules", "expected"),
    [
        (pings(3, 3), [pings(3, 0)], {"packets": 4}, PROVEN),
        (pings(3, 3), [pings(0, 0), pings(2, 0)], {"packets": 4}, PROVEN),
        (pings(3, 3), [pings(3, 1)], {"packets": 0}, DISPROVEN),
        (pings(3, 3), [pings(3, 0)], {"packets": 0}, UNPROVEN),  # others have narrowed the path
        (pings(3, 0), [pings(3, 0)], {"packets": 4}, UNPROVEN),  # the path is that narrow by itself
        (pings(3, 3), [pings(0, 0)], {"packets": 4}, UNPROVEN),  # no path at all
        (None, [pings(3, 0)], {"packets": 4}, UNPROVEN),
        (pings(3, 3), [pings(3, 0, "nodes")], {"packets": 4}, UNPROVEN),
        (pings(3, 3), [pings(3, 0)], False, DISPROVEN),
        (pings(3, 3), [pings(3, 3, address="10.0.0.0")], {"packets": 4}, UNPROVEN),  # to a peer of no rule
        (pings(3, 3), [pings(3, 3, address="10.0.0.0"), pings(3, 0)], {"packets": 4}, PROVEN),
        (pings(3, 3), [pings(3, 0, address="10.0.0.0")], {"packets": 4}, UNPROVEN),
        (pings(3, 3), [pings(3, 3, address=None)], {"packets": 4}, DISPROVEN),
        (pings(3, 3, address=None), [pings(3, 0)], {"packets": 4}, PROVEN),
    ],
)
def test_large_packets(before: Any, after: list[Any], rules: Any, expected: ProofStatus) -> None:
    assert proof("mtu", PINGS, before, after, rules) is expected


def near_pings(counts: tuple[int, int] | None, address: str = "10.0.0.2") -> dict[str, Any]:
    return pings(*counts, "own-zone", address) if counts else {}


@pytest.mark.parametrize(
    ("near_before", "near", "address", "expected"),
    [
        ((3, 3), (3, 3), "10.0.0.2", PROVEN),
        (None, None, "10.0.0.2", PROVEN),
        ((3, 3), (3, 0), "10.0.0.2", UNPROVEN),
        ((3, 3), (0, 0), "10.0.0.2", PROVEN),  # the node that is pinged there may be down
        ((3, 0), (3, 0), "10.0.0.2", PROVEN),  # that path is as narrow by itself
        (None, (3, 0), "10.0.0.2", PROVEN),
        ((3, 3), (3, 0), "10.0.0.0", PROVEN),  # one that has been moved there, of whom there is a rule
    ],
)
def test_large_packets_to_the_own_zone_pass(
    near_before: tuple[int, int] | None, near: tuple[int, int] | None, address: str, expected: ProofStatus
) -> None:
    fact = "mtu-pings?by=zone&size=1280"
    before = pings(3, 3, "other-zones") | near_pings(near_before)
    after = pings(3, 0, "other-zones") | near_pings(near, address)
    assert proof("mtu", fact, before, [after], {"packets": 4}, **{"from": "other-zones"}) is expected


def answers(received: int, kind: str = "other-zones", address: str = "10.0.0.3") -> dict[str, Any]:
    return {kind: {"address": address, "sent": 10, "received": received}}


ZONES, NODES, CIDR = {"from": "other-zones"}, {"from": "nodes"}, {"from": "cidr", "cidrs": ["10.0.0.0/24"]}
SOME, NONE = {"packets": 12}, {"packets": 0}


@pytest.mark.parametrize(
    ("before", "after", "rules", "expected"),
    [
        (answers(10), [answers(0)], SOME, PROVEN),
        (answers(10), [answers(0), answers(0)], SOME, PROVEN),
        (answers(1), [answers(0)], SOME, PROVEN),
        (answers(10), [answers(0), answers(1)], SOME, DISPROVEN),  # packets pass beside the packet filter
        (answers(10), [answers(10)], NONE, DISPROVEN),
        (answers(0), [answers(1)], SOME, DISPROVEN),
        (answers(10), [answers(0)], NONE, UNPROVEN),  # lost elsewhere
        (answers(0), [answers(0)], NONE, UNPROVEN),
        (answers(0), [answers(0)], SOME, PROVEN),  # a peer that answers no pings: by what was dropped
        (None, [answers(0)], SOME, PROVEN),
        (answers(10), [], SOME, PROVEN),
        (answers(10), [answers(0)], False, DISPROVEN),
        (answers(10), [answers(10, address="10.0.0.9")], SOME, PROVEN),  # to another peer: by what was dropped
        (answers(10), [answers(10, "own-zone")], SOME, PROVEN),
    ],
)
def test_a_partition_from_other_zones(before: Any, after: list[Any], rules: Any, expected: ProofStatus) -> None:
    assert proof("partition", "round-trips?by=zone", before, after, rules, **ZONES) is expected


@pytest.mark.parametrize(
    ("near_before", "near", "expected"),
    [
        (answers(10, "own-zone"), [answers(10, "own-zone")], PROVEN),
        (answers(10, "own-zone"), [answers(0, "own-zone")], UNPROVEN),
        (answers(10, "own-zone"), [answers(0, "own-zone"), answers(9, "own-zone")], PROVEN),  # it was down for a while
        (answers(0, "own-zone"), [answers(0, "own-zone")], PROVEN),
        ({}, [{}], PROVEN),
    ],
)
def test_a_partition_leaves_the_own_zone(near_before: Any, near: list[Any], expected: ProofStatus) -> None:
    after = [answers(0) | each for each in near]
    assert proof("partition", "round-trips?by=zone", answers(10) | near_before, after, SOME, **ZONES) is expected


@pytest.mark.parametrize(
    ("fact", "kind", "params", "answered"),
    [
        ("round-trips", "nodes", NODES, DISPROVEN),
        # One of the node's own pods, which the step leaves out, may have an address of the network.
        (str(FactRef("round-trips", {"networks": "10.0.0.0/24"})), "cidr", CIDR, UNPROVEN),
    ],
)
def test_a_partition_from_others_is_proven_by_pings_too(
    fact: str, kind: str, params: dict[str, Any], answered: ProofStatus
) -> None:
    assert proof("partition", fact, answers(10, kind), [answers(0, kind)], SOME, **params) is PROVEN
    assert proof("partition", fact, answers(10, kind), [answers(10, kind)], SOME, **params) is answered
    pods = params | {"traffic": "pods"}
    assert proof("partition", fact, answers(10, kind), [answers(10, kind)], SOME, **pods) is PROVEN


@pytest.mark.parametrize("odd", [None, [], "x", 7, {"other-zones": None}, {"other-zones": [1]}, {"other-zones": "x"}])
def test_readings_of_another_shape_show_nothing(odd: Any) -> None:
    assert proof("partition", "round-trips?by=zone", odd, [odd], SOME, **ZONES) is PROVEN
    assert proof("partition", "round-trips?by=zone", odd, [odd], NONE, **ZONES) is UNPROVEN


@pytest.mark.parametrize("received", [None, "10", [], {}])
def test_a_count_that_is_none_shows_nothing(received: Any) -> None:
    odd = {"other-zones": {"address": "10.0.0.3", "received": received}}
    assert proof("partition", "round-trips?by=zone", answers(10), [odd], SOME, **ZONES) is PROVEN
    assert proof("partition", "round-trips?by=zone", odd, [answers(0)], NONE, **ZONES) is UNPROVEN


def test_what_is_answered_when_the_host_may_have_ended_it_does_not_disprove_it() -> None:
    """Its timer is armed before the step, so the last 10 s of the duration do not count."""
    after = [*([answers(0)] * 4), answers(10)]  # from 20 s on, the last at 40 s; the step is at 10 s
    given = ZONES | {"duration": "38s"}
    assert proof("partition", "round-trips?by=zone", answers(10), after, SOME, **given) is PROVEN


@pytest.mark.parametrize(
    ("fires_at", "read", "expected"),
    [
        (60.0, 59.0, DISPROVEN),
        (60.0, 61.0, PROVEN),
        (42.0, 43.0, PROVEN),  # shortened to what was left of maxDuration
        (None, 59.0, DISPROVEN),
        (None, 61.0, PROVEN),  # an older recording: the timer may have fired 10 s before the end of 1 min after 10 s
        ("soon", 61.0, PROVEN),
    ],
)
def test_a_partition_ends_when_its_failsafe_timer_may_fire(fires_at: Any, read: float, expected: ProofStatus) -> None:
    """With the rules removed before, it was ended by somebody else."""
    params = {"from": "other-zones", "duration": "1m"}
    moment = {"failsafe": T0 + fires_at if isinstance(fires_at, float) else fires_at} if fires_at else {}
    story = Story().node(0, "n1").act(10, "partition", params=params)
    story.act(10.2, "partition", "returned", params=params, delivery="answered", exit=0, evidence=moment)
    story.host(5, FACT, answers(10)).host(20, FACT, answers(0), since=19).host(21, "nft-rules", SOME)
    story.host(read, "nft-rules", False)
    method = f"[{{name: do, action: partition, target: victim, with: {params}}}]"
    (step,) = judge(experiment(method=method), story.timeline(300), plugin_registry(), Options()).steps
    assert step.proof_status is expected, step.because

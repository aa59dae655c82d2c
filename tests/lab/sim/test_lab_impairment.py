"""Late and lost packets between a kubelet and the API server: Leases are late, and a node is Unknown only from much."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.node.network import Impairment
from tests.kit.simkit import VICTIM, node, ready, run, spec, started


def renewals(cluster: Cluster) -> list[float]:
    """Times of writes of the victim's Lease; the list grows while the cluster runs."""
    seen: list[float] = []
    cluster.store.subscribe(
        lambda change: (
            seen.append(cluster.sim.now)
            if change.plural == "leases" and change.object["metadata"]["name"] == VICTIM
            else None
        )
    )
    return seen


def states(seed: int, impairment: Impairment, seconds: int) -> tuple[list[str], list[float]]:
    """Status of Ready each second, and the gaps between renewals of the Lease."""
    cluster, _ = started(spec(seed=seed, dual_stack=False))
    seen = renewals(cluster)
    run(cluster, 15.0)
    cluster.machines[VICTIM].network.impair({"ipv4": impairment})
    found = []
    for _ in range(seconds):
        run(cluster, 1.0)
        found.append(str(ready(node(cluster))["status"]))
    return found, [later - earlier for earlier, later in pairwise(seen)]


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_loss_of_30_percent_makes_leases_late_and_no_node_unknown(seed: int) -> None:
    found, gaps = states(seed, Impairment(loss=0.3), 600)
    assert set(found) == {"True"}
    assert 10.4 < max(gaps) < 30


def test_a_loss_of_70_percent_makes_the_node_unknown_and_ready_again() -> None:
    found = [states(seed, Impairment(loss=0.7), 900)[0] for seed in range(1, 6)]
    assert all("Unknown" in some for some in found)
    changes = [sum(one != other for one, other in pairwise(some)) for some in found]
    assert max(changes) >= 4, "it flaps"


@pytest.mark.parametrize("loss", [0.7, 0.9])
def test_lost_answers_make_the_node_unknown(loss: float) -> None:
    cluster, _ = started(spec(dual_stack=False))
    seen = set()
    cluster.machines[VICTIM].network.impair({}, {"ipv4": Impairment(loss=loss)})
    for _ in range(900):
        run(cluster, 1.0)
        seen.add(ready(node(cluster))["status"])
    assert "Unknown" in seen


def test_a_renewal_is_late_and_the_next_one_follows_10_seconds_after_it() -> None:
    found, gaps = states(1, Impairment(delay=2.0), 300)
    assert set(found) == {"True"}
    assert all(11.9 < gap < 12.6 for gap in gaps[1:])


def test_an_answer_that_is_late_delays_the_next_renewal() -> None:
    cluster, _ = started(spec(dual_stack=False))
    run(cluster, 15.0)
    seen = renewals(cluster)
    cluster.machines[VICTIM].network.impair({}, {"ipv4": Impairment(delay=2.0)})
    run(cluster, 300.0)
    gaps = [later - earlier for earlier, later in pairwise(seen)]
    assert len(gaps) > 20
    assert all(11.9 < gap < 12.6 for gap in gaps[1:]), gaps
    assert ready(node(cluster))["status"] == "True"


def test_requests_keep_their_order() -> None:
    """TCP delivers in order: a request that is not late waits for one that is."""
    cluster, _ = started(spec(dual_stack=False))
    machine = cluster.machines[VICTIM]
    process = machine.kubelet._process
    assert process is not None
    seen: list[int] = []
    machine.network.impair({"ipv4": Impairment(delay=0.5, jitter=0.5)})
    for number in range(50):
        process.link.send(("test", number), seen.append, number)
    run(cluster, 2.0)
    assert seen == list(range(50))


def test_only_the_latest_of_a_key_is_under_way() -> None:
    cluster, _ = started(spec(dual_stack=False))
    machine = cluster.machines[VICTIM]
    process = machine.kubelet._process
    assert process is not None
    seen: list[str] = []
    machine.network.impair({"ipv4": Impairment(delay=0.5)})
    for text in ("old", "new"):
        process.link.send("test", seen.append, text)
    process.link.send("other", seen.append, "other")
    assert process.link.cancel("other")
    run(cluster, 2.0)
    assert seen == ["new"]


def test_the_network_of_before_returns_with_the_packets() -> None:
    cluster, _ = started(spec(dual_stack=False))
    network = cluster.machines[VICTIM].network
    network.impair({"ipv4": Impairment(loss=0.99)})
    run(cluster, 200.0)
    assert ready(node(cluster))["status"] == "Unknown"
    network.impair({})
    run(cluster, 30.0)
    assert ready(node(cluster))["status"] == "True"

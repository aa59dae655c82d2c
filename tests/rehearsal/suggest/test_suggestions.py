"""Groups of nodes, losses, the ranking, experiments and reports, from samples without a lab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.engine.load import load
from chaos.rehearsal.forecast.sample import Case, Finding, FindingKind, Outage, Sample, outages, still_on
from chaos.rehearsal.suggest.events import Event, Victim
from chaos.rehearsal.suggest.experiments import experiments_of
from chaos.rehearsal.suggest.findings import weaknesses_of
from chaos.rehearsal.suggest.formats import suggestion_markdown, suggestion_page, suggestion_text
from chaos.rehearsal.suggest.groups import MOST, node_victims, zone_victims
from chaos.rehearsal.suggest.losses import Loss, Rehearsed, losses_of
from chaos.rehearsal.suggest.model import Model
from chaos.rehearsal.suggest.risks import Status, check, risks_of
from tests.kit.small_contents import budget, node, of, small, workload
from tests.kit.small_timelines import pod, timeline_of
from tests.kit.suggestions import model, sample, suggestion


def web(*on: str, name: str = "web", **spec: Any) -> dict[str, list[dict[str, Any]]]:
    return workload("Deployment", name, on, **spec)


def nodes(count: int, zones: str = "a") -> list[dict[str, Any]]:
    return [node(f"w{n}", zones[n % len(zones)]) for n in range(count)]


def groups(found: Model) -> list[tuple[str, ...]]:
    return [each.stands_for for each in node_victims(found)[0]]


def test_nodes_with_the_same_kinds_of_pods_are_alike() -> None:
    robust = web("w0", "w1", "w2", "w3"), web("w0", "w0", "w1", "w2", "w3", name="api")
    assert groups(Model(small(*robust, nodes=nodes(4)))) == [("w0", "w1", "w2", "w3")]
    assert groups(Model(small(*robust, nodes=nodes(4, "ab")))) == [("w0", "w2"), ("w1", "w3")]


def test_single_replicas_are_alike_if_they_would_be_gone_for_the_same_time() -> None:
    singles = web("w0"), web("w1", name="api"), web("w2", name="slow", terminationGracePeriodSeconds=90)
    assert groups(Model(small(*singles, nodes=nodes(4)))) == [("w0", "w1"), ("w2",), ("w3",)]


def test_at_most_so_many_nodes_are_rehearsed_and_the_others_are_named() -> None:
    parts = [web(f"w{n}", name=f"app-{n}", terminationGracePeriodSeconds=n + 1) for n in range(MOST + 2)]
    victims, left = node_victims(Model(small(*parts, nodes=nodes(MOST + 3))))
    assert len(victims) == MOST
    assert len(left) == 3
    assert f"w{MOST + 2}" in left  # nothing runs there


def test_a_zone_of_one_worker_is_no_victim_of_its_own() -> None:
    assert [each.name for each in zone_victims(Model(small(nodes=nodes(3, "ab"))))] == ["a"]
    assert zone_victims(Model(small(nodes=nodes(3)))) == []


def one_loss(found: Model, rehearsed: Rehearsed, index: int = 0) -> Loss:
    (loss,) = losses_of(found.workloads[index], found, rehearsed)
    return loss


def test_a_loss_has_the_band_of_its_rehearsals() -> None:
    rehearsed = Rehearsed()
    for seed, seconds in enumerate((2.0, 4.0, 9.0)):
        rehearsed.add(Event.DRAIN, Victim("w1", ("w1",)), sample(seed, seconds, unevicted=seed == 0))
    loss = one_loss(model(), rehearsed)
    assert (loss.runs, loss.mean, loss.low, loss.p50, loss.high, loss.unevicted) == (3, 5.0, 2.0, 4.0, 9.0, 1)
    assert loss.what == "no serving pod for 4s (2s to 9s), its pods cannot be evicted, so the drain does not complete"


def test_pods_that_a_drain_of_a_whole_zone_leaves_are_no_loss() -> None:
    rehearsed = Rehearsed()
    rehearsed.add(Event.DRAIN, Victim("a", ("w1",), is_zone=True), sample(1, 0.0, unevicted=True))
    assert one_loss(model(), rehearsed).unevicted == 0


def test_refused_rehearsals_are_no_evidence() -> None:
    rehearsed = Rehearsed()
    rehearsed.add(Event.DRAIN, Victim("w1", ("w1",)), Sample(1, "w1", None, refused="no power control"))
    assert losses_of(model().workloads[0], model(), rehearsed) == []
    assert list(rehearsed.refusals()) == ["drain of w1: no power control"]


def test_a_workload_elsewhere_has_the_losses_of_one_that_is_alike() -> None:
    contents = small(web("w0"), web("w1", name="api"), web("w2", name="slow", terminationGracePeriodSeconds=90),
                     nodes=nodes(3))  # fmt: skip
    found, rehearsed = Model(contents), Rehearsed()
    gone = Outage("Deployment", "shop/web", 1, 345.0, 345.0, False)
    rehearsed.add(Event.POWER_CUT, Victim("w0", ("w0",), ("w0", "w1")), Sample(1, "w0", None, outages=(gone,)))
    loss = one_loss(found, rehearsed, 1)
    assert (loss.mean, loss.victim, loss.measured_on) == (345.0, "w1", "w0")
    assert losses_of(found.workloads[2], found, rehearsed) == []


def test_pods_that_wait_for_room_are_a_loss_with_a_node_but_not_with_a_zone() -> None:
    found = Model(small(web("w0", "w1", "w3"), nodes=nodes(4, "ab")))
    waits = Finding(FindingKind.NO_ROOM, "shop/web", 1, 400.0, False, "0/4 nodes are available")
    short = Finding(FindingKind.NO_ROOM, "shop/web", 1, 5.0, False, "0/4 nodes are available")
    for victim, finding, waiting in (
        (Victim("w0", ("w0",)), waits, 1),
        (Victim("w0", ("w0",)), short, 0),
        (Victim("a", ("w0", "w2"), is_zone=True), waits, 0),
    ):
        rehearsed = Rehearsed()
        rehearsed.add(Event.POWER_CUT, victim, Sample(1, victim.name, None, (finding,)))
        assert one_loss(found, rehearsed).waiting == waiting


def test_the_longest_loss_is_first_and_equal_losses_have_the_gentlest_event() -> None:
    found, rehearsed = Model(small(web("w0"), web("w1", name="api"), nodes=nodes(2))), Rehearsed()
    for event, victim, name, seconds in (
        (Event.POWER_CUT, "w0", "web", 300.0),
        (Event.DRAIN, "w0", "web", 290.0),
        (Event.POWER_CUT, "w1", "api", 600.0),
        (Event.DRAIN, "w1", "api", 3.0),
    ):
        gone = Outage("Deployment", f"shop/{name}", 1, seconds, seconds, False)
        rehearsed.add(event, Victim(victim, (victim,)), Sample(1, victim, None, outages=(gone,)))
    risks = risks_of(found, rehearsed, weaknesses_of(found))
    assert [(each.workload, each.worst.event) for each in risks] == [
        ("Deployment shop/api", Event.POWER_CUT),
        ("Deployment shop/web", Event.DRAIN),
    ]
    assert risks[0].change == "replicas=shop/api:2"


def test_a_weakness_is_confirmed_not_seen_or_not_rehearsed() -> None:
    found = Model(
        small(
            web("w0"),
            web("w0", "w1", name="api"),
            web("w1", name="idle", terminationGracePeriodSeconds=9),
            nodes=nodes(2),
        )
    )
    gone = Outage("Deployment", "shop/web", 1, 9.0, 9.0, False)
    rehearsed = Rehearsed()
    rehearsed.add(Event.DRAIN, Victim("w0", ("w0",)), Sample(1, "w0", None, outages=(gone,)))
    weaknesses = weaknesses_of(found)
    checked = {each.weakness.subject: each.status for each in check(weaknesses, risks_of(found, rehearsed, weaknesses))}
    assert checked["Deployment shop/web"] is Status.CONFIRMED
    assert checked["Deployment shop/idle"] is Status.NOT_SEEN
    assert checked["Deployment shop/api"] is Status.NOT_REHEARSED


def test_experiments_are_valid_and_the_gentlest_is_first(tmp_path: Path) -> None:
    found = suggestion().experiments
    assert [each.file for each in found] == [
        "01-shop-db-drain.yaml",
        "01-shop-db-poweroff.yaml",
        "01-shop-db-power-cut.yaml",
    ]
    for each in found:
        path = tmp_path / each.file
        path.write_text(each.text, encoding="utf-8")
        spec = load(path).experiment.spec
        runs = spec.targets["victim"].runs
        assert runs is not None
        assert (runs.namespace, runs.owner) == ("shop", "StatefulSet/db")
        assert f"Predicted for {Event(each.event).words}" in each.text
    titles = [each.title for each in spec.hypothesis]
    assert titles == [
        "shop/db always has 1 of 1 pod, as its spec asks",
        "as predicted, shop/db has no pod before the node is back",
    ]


def lost(found: Model, victim: Victim, event: Event = Event.DRAIN) -> Rehearsed:
    rehearsed, workload_ = Rehearsed(), found.workloads[0]
    gone = Outage(workload_.kind, workload_.name, 1, 60.0, 60.0, False)
    rehearsed.add(event, victim, Sample(1, victim.name, None, outages=(gone,)))
    return rehearsed


def first_experiment(found: Model, victim: Victim, path: Path) -> dict[str, Any]:
    risks = risks_of(found, lost(found, victim), ())
    text = next(iter(experiments_of(risks, found))).text
    path.write_text(text, encoding="utf-8")
    spec: dict[str, Any] = load(path).experiment.model_dump(by_alias=True, exclude_defaults=True)["spec"]
    return spec


@pytest.mark.parametrize("kind", ["ReplicaSet", "Pod"])
def test_workloads_that_have_no_availability_are_counted_by_pods(kind: str, tmp_path: Path) -> None:
    lone: dict[str, Any] = {"metadata": {"name": "lone", "namespace": "shop", "uid": "u", "labels": {"app": "lone"}},
            "spec": {"nodeName": "w0", "containers": []}}  # fmt: skip
    owner = {"ownerReferences": [{"kind": "ReplicaSet", "name": "lone", "uid": "set", "controller": True}]}
    held = {**lone, "metadata": {**lone["metadata"], **(owner if kind == "ReplicaSet" else {})}}
    sets = of("replicasets", "lone", spec={"replicas": 1}) if kind == "ReplicaSet" else {}
    for each in sets.get("replicasets", ()):
        each["metadata"]["uid"] = "set"
    spec = first_experiment(
        Model(small({"pods": [held]}, sets, nodes=nodes(1))), Victim("w0", ("w0",)), tmp_path / "e.yaml"
    )
    assert spec["steadyState"][1]["assert"] == "pods"
    assert ("force" in spec["method"][0]["with"]) == (kind == "Pod")


def test_what_an_experiment_needs_on_its_nodes(tmp_path: Path) -> None:
    scratch = web("w0", "w1", volumes=[{"name": "s", "emptyDir": {}}])
    found = Model(small(scratch, budget("web", 2, 1), nodes=nodes(4, "ab")))
    spec = first_experiment(found, Victim("w0", ("w0",)), tmp_path / "node.yaml")
    assert spec["allow"] == ["irreversible"]
    assert spec["targets"]["victim"]["nodes"] == ["w0"]
    assert spec["hypothesis"][0]["with"]["unavailable-at-most"] == 1
    zone = first_experiment(found, Victim("a", ("w0", "w2"), is_zone=True), tmp_path / "zone.yaml")
    assert zone["targets"]["victim"] == {"role": "worker", "zone": "a", "count": "100%"}
    assert zone["abort"][0]["with"] == {"not-ready-at-most": 2}


def test_reports_say_simulated_and_have_the_worst_first() -> None:
    found = suggestion()
    sentence = "StatefulSet shop/db, a power cut of w1: no serving pod until w1 is back (13m observed) in 2 rehearsals."
    text, markdown, page = suggestion_text(found), suggestion_markdown(found), suggestion_page(found)
    assert text[0] == found.headline == sentence
    assert "a second replica (rehearsed: shop/db has 2 replicas: 0 s)" in "\n".join(text)
    for shown in (markdown, page):
        assert "shop/db" in shown
        assert "simulated" in shown
    assert "SIMULATED: rehearsals on copies, not your cluster" in page
    assert "01-shop-db-drain.yaml" in page


def test_names_of_others_are_escaped() -> None:
    found = replace(suggestion(), headline="db<b>\u202e")
    assert "<b>" not in suggestion_page(found)
    assert all("\u202e" not in line for line in suggestion_text(found))


def test_what_counts_ends_with_the_step_that_ends_the_fault() -> None:
    db = "StatefulSet/db"
    lines = (
        (90.0, "pods", "LIST", pod("Running", ready=True, on="n1", name="db-0", uid="1", owner=db)),
        (700.0, "pods", "DELETED", pod("Running", ready=True, on="n1", name="db-0", uid="1", owner=db)),
        (710.0, "pods", "ADDED", pod("Running", ready=True, on="n2", name="db-0", uid="2", owner=db)),
    )
    case = Case(timeline_of(*lines), 100.0, {"n1": ((100.0, 700.0),)}, until=600.0)
    (outage,) = outages(case)
    assert (outage.none, outage.lasts) == (500.0, True)
    assert still_on(case, ["n1"]) == (("StatefulSet", "ns/db"),)
    assert still_on(Case(timeline_of(*lines), 100.0, {}), ["n1"]) == ()

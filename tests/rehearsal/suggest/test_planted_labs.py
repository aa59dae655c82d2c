"""Labs with one planted weakness: it is ranked first, and the suggested experiment shows what was predicted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.core.verdict import Status as Verdict
from chaos.engine.load import load
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.rehearsal.copies import read_contents, snapshot_source
from chaos.rehearsal.forecast.sample import Sample
from chaos.rehearsal.many import Rehearsals
from chaos.rehearsal.suggest.document import Suggestion
from chaos.rehearsal.suggest.events import BACK
from chaos.rehearsal.suggest.experiments import MARGIN, SHARE
from chaos.rehearsal.suggest.risks import Risk, Status
from chaos.rehearsal.suggest.weakness import WeaknessKind
from chaos.rehearsal.suggestion import SuggestOptions, suggest
from tests.kit.lab_copies import save

Object = dict[str, Any]
K = WeaknessKind
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FOREVER = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}


def body(name: str, replicas: int, key: str = "", cpu: str = "100m", **spec: Any) -> Object:
    """A workload, spread over the values of the label ``key``."""
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": name}}
    pod = {"containers": [container], **({"topologySpreadConstraints": [spread]} if key else {}), **spec}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def budget(name: str, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": selector, **spec}}


def sound(cluster: Cluster) -> None:
    """What every lab has besides."""
    cluster.create_object("deployments", body("front", 3, HOST))
    cluster.create_object("poddisruptionbudgets", budget("front", maxUnavailable=1))


def stateful(cluster: Cluster) -> None:
    cluster.create_object("statefulsets", body("db", 3, HOST))
    cluster.create_object("poddisruptionbudgets", budget("db", maxUnavailable=1))


def agent(cluster: Cluster) -> None:
    made = body("agent", 0)
    del made["spec"]["replicas"]
    cluster.create_object("daemonsets", made)


def single(cluster: Cluster) -> None:
    cluster.create_object("deployments", body("weak", 1))


def single_stateful(cluster: Cluster) -> None:
    cluster.create_object("statefulsets", body("weak", 1))


def bare(cluster: Cluster) -> None:
    pod = body("weak", 1)["spec"]["template"]
    cluster.create_object("pods", {**pod, "metadata": {"name": "weak", "namespace": "shop", "labels": {"app": "weak"}}})


def one_node(cluster: Cluster) -> None:
    """Created while all other nodes were cordoned."""
    others = ("w1", "w2", "w3")
    for name in others:
        cluster.store.patch("nodes", "", name, lambda node: node["spec"].update(unschedulable=True))
    cluster.create_object("deployments", body("weak", 2))
    cluster.create_object("poddisruptionbudgets", budget("weak", maxUnavailable=1))
    cluster.sim.run_until(cluster.sim.now + 30)
    for name in others:
        cluster.store.patch("nodes", "", name, lambda node: node["spec"].pop("unschedulable"))


def one_zone(cluster: Cluster) -> None:
    cluster.create_object("deployments", body("weak", 2, HOST, nodeSelector={ZONE: "a"}))
    cluster.create_object("poddisruptionbudgets", budget("weak", maxUnavailable=1))


def blocked(cluster: Cluster) -> None:
    cluster.create_object("deployments", body("weak", 3, HOST))
    cluster.create_object("poddisruptionbudgets", budget("weak", minAvailable=3))


def no_room(cluster: Cluster) -> None:
    cluster.create_object("deployments", body("weak", 4, HOST, cpu="1500m"))
    cluster.create_object("poddisruptionbudgets", budget("weak", maxUnavailable=1))


def forever(cluster: Cluster) -> None:
    cluster.create_object("deployments", body("weak", 1, tolerations=[FOREVER]))


def volume(cluster: Cluster) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = body("weak", 1)
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    cluster.create_object("statefulsets", made)


Plant = Callable[[Cluster], None]
NIGHTLY = pytest.mark.nightly
PLANTED: list[Any] = [
    (single, K.SINGLE_REPLICA, "Deployment shop/weak", "power-cut"),
    pytest.param(single_stateful, K.STATEFUL_ON_NODE, "StatefulSet shop/weak", "power-cut", marks=NIGHTLY),
    pytest.param(bare, K.BARE_POD, "Pod shop/weak", "drain", marks=NIGHTLY),
    pytest.param(one_node, K.ONE_NODE, "Deployment shop/weak", "power-cut", marks=NIGHTLY),
    (one_zone, K.ONE_ZONE, "Deployment shop/weak", "poweroff"),
    (blocked, K.BUDGET_BLOCKS, "Deployment shop/weak", "drain"),
    pytest.param(no_room, K.NO_ROOM, "Deployment shop/weak", "drain", marks=NIGHTLY),
    pytest.param(forever, K.STAYS_FOREVER, "Deployment shop/weak", "power-cut", marks=NIGHTLY),
    pytest.param(volume, K.ATTACHED_VOLUME, "StatefulSet shop/weak", "power-cut", marks=NIGHTLY),
]


def suggested(path: Path, *plants: Plant) -> Suggestion:
    """What is suggested for a lab of four workers in three zones, to which ``plants`` have been added."""
    grace: dict[str, Any] = {"shutdown_grace_period": "60s", "shutdown_grace_period_critical_pods": "30s"}
    workers = [NodeSpec(name=f"w{n}", zone="abca"[n], capacity={"cpu": "2"}, **grace) for n in range(4)]
    spaces = ["default", "kube-system", "kube-public", "kube-node-lease", "shop"]
    nodes = [NodeSpec(name="cp", role="control-plane"), *workers]
    cluster = Cluster(LabSpec(nodes=nodes, seed=5, namespaces=spaces))
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + 5)
    for plant in (*plants, sound):
        plant(cluster)
        cluster.sim.run_until(cluster.sim.now + 30)
    save(cluster, path)
    return suggest(SuggestOptions(path, read_contents(path), 1, 2, "", 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "kind", "subject", "event"), PLANTED, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_weakness(plant: Plant, kind: WeaknessKind, subject: str, event: str, tmp_path: Path) -> None:
    found = suggested(tmp_path / "s.gz", plant)
    assert found.risks[0].workload == subject
    assert [risk.workload for risk in found.risks] == [subject]
    assert {each.weakness.kind: each.status for each in found.weaknesses}[kind] is Status.CONFIRMED
    assert {each.weakness.subject for each in found.weaknesses} == {subject}
    assert str(found.risks[0].worst.event) == event
    (experiment,) = [each for each in found.experiments if each.event == event]
    file = tmp_path / experiment.file
    file.write_text(experiment.text, encoding="utf-8")
    (sample,) = Rehearsals(load(file), snapshot_source(tmp_path / "s.gz"), 1).over_seeds([11])
    assert sample.refused == ""
    assert sample.result is not None
    verdicts = {each.name: each.status for each in sample.result.hypothesis}
    required, *predicted = verdicts.items()
    lost = [title for title, status in verdicts.items() if status is Verdict.VIOLATED]
    assert lost, verdicts
    assert [status for title, status in predicted if "predicted" in title] in ([], [Verdict.HELD]), required


def is_as_predicted(sample: Sample, risk: Risk, event: str) -> bool:
    """Whether a run lost what the rehearsals predict, with the tolerance that the experiment has, and said so."""
    alike = (each for each in risk.losses if (str(each.event), each.victim) == (event, risk.worst.victim))
    loss = next(alike, None)
    low, high = (loss.low, loss.high) if loss else (0.0, 0.0)
    gone = next((each.none for each in sample.outages if f"{each.kind} {each.name}" == risk.workload), 0.0)
    assert sample.result is not None, sample.refused
    verdicts = [each.status for each in sample.result.hypothesis if "predicted" in each.name]
    in_band = low / SHARE - MARGIN <= gone <= high * SHARE + MARGIN
    return in_band and set(verdicts) <= {Verdict.HELD}


@NIGHTLY
@pytest.mark.parametrize("plant", [single, single_stateful, one_node, one_zone, volume], ids=lambda each: each.__name__)
def test_runs_on_other_seeds_are_as_predicted(plant: Plant, tmp_path: Path) -> None:
    found = suggested(tmp_path / "s.gz", plant)
    hits: dict[str, list[bool]] = {}
    for experiment in found.experiments:
        file = tmp_path / experiment.file
        file.write_text(experiment.text, encoding="utf-8")
        samples = Rehearsals(load(file), snapshot_source(tmp_path / "s.gz"), 2, until=BACK).over_seeds(range(20, 30))
        hits[experiment.event] = [is_as_predicted(each, found.risks[0], experiment.event) for each in samples]
    runs = [hit for each in hits.values() for hit in each]
    counts = {event: f"{sum(each)} of {len(each)}" for event, each in hits.items()}
    assert runs, found.headline
    assert 20 * sum(runs) >= 19 * len(runs), counts


@pytest.mark.slow
@pytest.mark.parametrize("plants", [pytest.param((), marks=NIGHTLY), (stateful, agent)], ids=["little", "much"])
def test_a_sound_lab(plants: tuple[Plant, ...], tmp_path: Path) -> None:
    found = suggested(tmp_path / "s.gz", *plants)
    assert found.risks == ()
    assert found.weaknesses == ()
    assert found.experiments == ()
    assert found.headline == "No weakness was found, and every workload kept a serving pod in every rehearsal."

"""Bad networks between zones on the lab: what is hit, what is not, and refusals before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from chaos.app.lab_spec import lab_spec
from chaos.app.run.results import JudgedRun
from chaos.core.action import ProofStatus
from chaos.core.errors import Refused
from chaos.core.lab_settings import Lab
from chaos.engine.load import load
from chaos.lab.facade import LabSpec
from chaos.rehearsal.run import rehearse_once
from tests.kit.processes import EXPERIMENTS
from tests.kit.rehearsals import START

EFFECTS: dict[str, dict[str, Any]] = {
    "bandwidth": {"rate": "1mbit"},
    "latency": {"delay": "200ms"},
    "mtu": {"size": 1280},
    "packet-corrupt": {"percent": 50},
    "packet-duplicate": {"percent": 50},
    "packet-loss": {"percent": 50, "direction": "both"},
}


def run(directory: Path, action: str, with_: dict[str, Any], zones: Sequence[str], plane: str = "") -> JudgedRun:
    """A run of one step on worker-1, which must leave the node Ready; ``plane``: the zone of the control plane."""
    document = yaml.safe_load((EXPERIMENTS / "lossy-network.yaml").read_text(encoding="utf-8"))
    spec = document["spec"]
    spec["targets"] = {"victim": {"nodes": ["worker-1"]}}
    spec["method"] = [{"name": "lossy", "action": action, "target": "victim", "with": {"from": "other-zones"} | with_}]
    file = directory / "zones.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    labels = {"topology.kubernetes.io/zone": plane} if plane else {}
    lab = Lab.model_validate({"workers": 4, "zones": [*zones], "controlPlaneLabels": labels})
    simulated = msgspec.convert(lab_spec(lab, 1, START), LabSpec)
    return rehearse_once(load(file), simulated, 1)


@pytest.mark.parametrize("action", sorted(EFFECTS))
def test_other_zones_are_hit_and_the_own_one_is_not(tmp_path: Path, action: str) -> None:
    done = run(tmp_path, action, EFFECTS[action] | {"duration": "2m"}, ["a", "b"])
    (step,) = done.result.steps
    assert step.proof_status is ProofStatus.PROVEN, step.because
    assert action == "mtu" or "to its own zone" in step.because
    assert done.result.status == "held", done.result.headline
    assert all(undo.proven for undo in done.result.undo)
    assert done.result.leftovers == ()


def test_a_zone_without_another_node_is_enough(tmp_path: Path) -> None:
    (step,) = run(
        tmp_path, "packet-loss", EFFECTS["packet-loss"] | {"duration": "2m"}, ["a", "b", "c", "d"]
    ).result.steps
    assert step.proof_status is ProofStatus.PROVEN
    assert "own zone" not in step.because


@pytest.mark.parametrize(("plane", "status"), [("", "held"), ("a", "held"), ("b", "violated"), ("c", "violated")])
def test_a_control_plane_in_another_zone_loses_the_node(tmp_path: Path, plane: str, status: str) -> None:
    """In the own zone, or in none, it notices nothing."""
    done = run(tmp_path, "packet-loss", {"percent": 95}, ["a", "b"], plane)
    assert done.result.steps[0].proof_status is ProofStatus.PROVEN, done.result.steps[0].because
    assert str(done.result.status) == status, done.result.headline


@pytest.mark.parametrize(("plane", "status"), [("", "held"), ("a", "held"), ("c", "violated")])
def test_a_partition_is_proven_by_pings_and_undone(tmp_path: Path, plane: str, status: str) -> None:
    done = run(tmp_path, "partition", {"duration": "3m"}, ["a", "b"], plane)
    assert done.result.steps[0].proof_status is ProofStatus.PROVEN, done.result.steps[0].because
    assert "0 of 10 pings of worker-1 to" in done.result.steps[0].because
    assert str(done.result.status) == status
    reached = [r.value for r in done.timeline.readings("worker-1", "api-reachable")]
    assert ({"ipv4": False, "ipv6": False} in reached) is (status == "violated")
    (undo,) = done.result.undo
    assert undo.proven
    assert done.result.leftovers == ()


@pytest.mark.parametrize("given", [{"from": "nodes"}, {"from": "cidr", "cidrs": ["10.89.0.4/32"]}])
def test_a_partition_from_other_peers_is_proven_by_pings(tmp_path: Path, given: dict[str, Any]) -> None:
    done = run(tmp_path, "partition", given, ["a", "b"])
    assert done.result.steps[0].proof_status is ProofStatus.PROVEN, done.result.steps[0].because
    assert "pings of worker-1 to" in done.result.steps[0].because


@pytest.mark.parametrize("action", [*sorted(EFFECTS), "partition"])
@pytest.mark.parametrize(
    ("zones", "why"),
    [([], "worker-1 has no label topology.kubernetes.io/zone"), (["a"], "every node has the same label")],
)
def test_without_other_zones_nothing_is_sent(tmp_path: Path, action: str, zones: list[str], why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        run(tmp_path, action, EFFECTS.get(action, {}), zones)
    assert "use from: cidr" in refused.value.hint

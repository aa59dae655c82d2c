"""Replay of volumes: restored, compared, and detached when the recorded cluster did."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from chaos.lab.cluster import Cluster
from chaos.lab.objects import name_of, namespace_of
from chaos.lab.recorded.parser import parse
from chaos.lab.spec import ControllerSpec
from tests.kit.labtrace import Lines, Step, pod_of, record, spec
from tests.kit.simkit import VICTIM
from tools.replay.compare import compare
from tools.replay.play import play, replay
from tools.replay.states import volume_histories


def _force_delete(cluster: Cluster) -> None:
    pod = pod_of(cluster, "disk")
    cluster.delete_object("pods", namespace_of(pod), name_of(pod), 0)


CUT: Step = (0, "power-cut", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_off())
POWEROFF: Step = (0, "poweroff", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].logind.power_off())
OUT = "node.kubernetes.io/out-of-service"
SCENARIOS: dict[str, tuple[list[Step], float]] = {
    "force-deleted, then the six minutes": ([CUT, (95, "force-delete-pod", "", {}, _force_delete)], 385),
    "force-deleted before it is Terminating": ([CUT, (55, "force-delete-pod", "", {}, _force_delete)], 60),
    "back with a Terminating pod": (
        [CUT, (110, "power-on", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_on())], 60,
    ),
    "powered off in order, and on again": (
        [POWEROFF, (90, "power-on", VICTIM, {}, lambda cluster: cluster.machines[VICTIM].power_on())], 60,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_volumes_are_replayed(name: str) -> None:
    steps, after = SCENARIOS[name]
    result = replay(parse(record(spec(7), steps, after, volumes=True)), 1)
    assert [str(item) for item in result.differences] == []
    assert result.matched == result.total > 0


def test_force_deletion_is_one_operation() -> None:
    """Deletion with grace 0 and the removal are two observations; the replacement has the same name."""
    steps, after = SCENARIOS["force-deleted before it is Terminating"]
    operations = parse(record(spec(7), steps, after, volumes=True)).operations
    deletions = [item for item in operations if item.action in ("user-delete", "user-force-delete")]
    assert [item.params["grace"] for item in deletions] == [0]


@pytest.mark.parametrize("kind", ["volumeattachments", "persistentvolumeclaims", "persistentvolumes"])
def test_other_states_are_differences(kind: str) -> None:
    steps, after = SCENARIOS["back with a Terminating pod"]
    lines = record(spec(7), steps, after, volumes=True)
    real = parse(copy.deepcopy(lines))
    result = compare(parse(_with_other_states(lines, kind)), play(real), ControllerSpec())
    assert result.matched < result.total
    assert result.differences


def _with_other_states(lines: Lines, kind: str) -> Lines:
    for line in lines:
        if line["kind"] == kind:
            status: dict[str, Any] = line["object"]["status"]
            status.update(attached=False) if kind == "volumeattachments" else status.update(phase="Lost")
    return lines


def test_provisioned_volumes_are_identified_by_their_claims() -> None:
    recording = parse(record(spec(7), [CUT], 5, volumes=True))
    histories = volume_histories(recording.observations)
    assert {"volume of vol/one", "claim vol/one", "volume of vol/data-disk-0"} <= set(histories)
    attachments = {history.owner for key, history in histories.items() if key.startswith("attachment of ")}
    assert attachments == {"vol/one", *(f"vol/data-disk-{number}" for number in range(3))}

"""Every shipped experiment has the verdict that it says, in the process of its lab, with the least rights.

With ten seeds if NODEFALL_EXPERIMENTS=all (``.ci/nightly``). Over the network: ``test_connected.py``. So has it on labs
of other sizes, with a seeded part of all sizes and seeds, or with all.
On a lab that does wrong, the experiments that say so notice it, and the others say what they say without it: a seeded
part of the table of breakages, the whole one if NODEFALL_EXPERIMENTS=all.
"""

from __future__ import annotations

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.errors import Refused
from chaos.core.verdict import Status
from chaos.rehearsal.run import RehearsalOptions, rehearse_once
from tests.kit.experiment_runs import BUNDLED, IS_WHOLE, NOTICED, UNDECIDED, is_noticed, part, unnoticed
from tests.kit.rehearsals import loaded, outcome, rehearse, rehearse_of_size, settings_of, spec_of

SEEDS = range(1, 11 if IS_WHOLE else 2)


SIXTY_NODES = "large-zone-outage"  # takes as long as ten others


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == SIXTY_NODES else []) for name in BUNDLED]
)
def test_it_has_its_verdict(name: str, seed: int) -> None:
    run = rehearse(name, seed)
    assert outcome(run) == BUNDLED[name].notes["verdict"], run.result.headline
    violated = [verdict.name for verdict in run.result.hypothesis if verdict.shown is Status.KNOWN]
    assert violated == [item.title for item in loaded(name).experiment.spec.hypothesis if item.known]
    assert all(undo.proven for undo in run.result.undo)
    assert run.result.foreign_faults == ()
    assert run.result.leftovers == ()


POWERED = [
    name
    for name in BUNDLED
    if {step.action for step in loaded(name).experiment.spec.method} & {"power-cut", "power-on", "power-button"}
]


@pytest.mark.parametrize("name", part(POWERED, None if IS_WHOLE else 6))
def test_a_power_control_that_lies_proves_nothing(name: str) -> None:
    """It answers as if it had acted, and does nothing."""
    settings = settings_of(name)
    spec = msgspec.structs.replace(spec_of(name), power_lies=True)
    result = rehearse_once(loaded(name), spec, 1, RehearsalOptions(settings)).result
    powered = [step for step in result.steps if step.action in ("power-cut", "power-on", "power-button")]
    assert not [step.because for step in powered if step.proof_status is ProofStatus.PROVEN]
    assert Status.HELD not in [verdict.status for verdict in (*result.hypothesis, *result.recovery)]


def test_no_volume_is_detached_from_a_machine_of_which_a_power_control_lies() -> None:
    name = "out-of-service-volume"
    spec = msgspec.structs.replace(spec_of(name), power_lies=True)
    result = rehearse_once(loaded(name), spec, 1, RehearsalOptions(settings_of(name))).result
    assert "step declare on worker-1 was not done: it requires node-ready is False" in result.headline


COUNT = None if IS_WHOLE else 10
SIZES = (3, 4, 8, 30)
UNSUITED = {  # numbers of workers at which an experiment is refused, and why
    "eviction-rate": {3: "needs 4 node", 4: "four nodes are less than 55 % of all nodes"},
    "large-zone-outage": dict.fromkeys(SIZES, "needs 29 node"),
    "partial-zone-outage": {3: "needs 3 node", 4: "needs 3 node"},
    "third-node-of-a-zone": {3: "needs 1 node", 4: "needs 1 node"},
    "total-outage": {3: "the nodes that count are workers, at least four"},
}
SUITED = [
    (name, workers, seed)
    for name in BUNDLED
    for workers in SIZES
    for seed in range(1, 6)
    if workers not in UNSUITED.get(name, {})
]


@pytest.mark.parametrize(("name", "workers", "seed"), part(SUITED, COUNT))
def test_it_has_its_verdict_on_clusters_of_any_size(name: str, workers: int, seed: int) -> None:
    run = rehearse_of_size(name, workers, seed)
    assert outcome(run) == BUNDLED[name].notes["verdict"], run.result.headline
    assert run.result.leftovers == ()


@pytest.mark.parametrize(
    ("name", "workers", "why"), [(name, size, why) for name, sizes in UNSUITED.items() for size, why in sizes.items()]
)
def test_it_does_nothing_to_a_cluster_that_is_too_small(name: str, workers: int, why: str) -> None:
    if "needs" in why:  # the plan fails
        with pytest.raises(Refused, match=why):
            rehearse_of_size(name, workers, 1)
        return
    run = rehearse_of_size(name, workers, 1)
    assert run.result.headline.startswith(f"refused: no steady state: {why}")
    assert run.timeline.actions == []


@pytest.mark.parametrize(("name", "breakage"), part(NOTICED, COUNT), ids=str)
def test_it_is_noticed(name: str, breakage: str) -> None:
    run = rehearse(name, breakages=[breakage])
    assert is_noticed(name, str(run.result.status)), run.result.headline


@pytest.mark.parametrize(("name", "breakage"), part(UNDECIDED, COUNT), ids=str)
def test_it_cannot_be_decided(name: str, breakage: str) -> None:
    run = rehearse(name, breakages=[breakage])
    assert str(run.result.status) == "inconclusive", run.result.headline


@pytest.mark.parametrize(("name", "group"), part(unnoticed(), COUNT), ids=lambda value: str(value)[:40])
def test_it_is_not_noticed(name: str, group: tuple[str, ...]) -> None:
    run = rehearse(name, breakages=group)
    assert outcome(run) == BUNDLED[name].notes["verdict"], f"{group}: {run.result.headline}"


@pytest.mark.parametrize("name", ["lock-after-cancel", "poweroff-after-cancel"])
def test_a_kubelet_that_keeps_its_lock_does_what_the_documentation_says(name: str) -> None:
    """As when another file has got the number of the released lock."""
    spec = msgspec.structs.replace(spec_of(name), inhibitor_lost_after_cancel="never")
    run = rehearse_once(loaded(name), spec, 1, RehearsalOptions(settings_of(name)))
    assert {verdict.shown for verdict in run.result.hypothesis} == {Status.HELD}, run.result.headline

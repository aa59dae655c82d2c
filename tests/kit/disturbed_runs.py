"""Seeded runs whose watches are late, or whose API server is starved, and how their verdicts differ."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from chaos.app.labs import LabServeOptions, start_lab
from chaos.app.run.experiment import RunRequest, run
from chaos.app.run.plan import always_confirm
from chaos.app.wiring.connect import connect_cluster, with_lab_cluster
from chaos.core.inventory import Inventory, Lab
from chaos.core.result import RunResult
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import load
from chaos.engine.progress import NullProgress
from tests.kit.disturbance import DisturbancePlan
from tests.kit.disturbed_rows import STARVED, Row, Statuses, measured, name_of, statuses
from tests.kit.disturbing import Disturbance, DisturbedApi
from tests.kit.experiment_runs import BUNDLED
from tests.kit.processes import EXPERIMENTS, ROOT

Disturb = Callable[[ClusterConnection, ExitStack], Any]


@dataclass(frozen=True, slots=True)
class MisbehavingLab(LabServeOptions):
    misbehaviours: tuple[str, ...] = ()

    def arguments(self, lab: Lab) -> list[str]:
        options = (option for name in self.misbehaviours for option in ("--misbehave", name))
        return [*LabServeOptions.arguments(self, lab), *options]


def disturbed(kind: str, seed: int, directory: Path) -> Row:
    """Run the experiment of this seed, and compare."""
    name = name_of(seed)

    def run_late() -> tuple[RunResult, DisturbancePlan | None]:
        made: list[Disturbance] = []

        def disturb(connection: ClusterConnection, stack: ExitStack) -> Any:
            made.append(stack.enter_context(Disturbance(connection.clock, seed).active()))
            return DisturbedApi(connection.kube, made[0])

        return outcome(name, directory, disturb), made[0].plan

    def run_starved() -> tuple[RunResult, DisturbancePlan | None]:
        return outcome(name, directory, _as_it_is, ("slow-answers",), seed), None

    return measured(kind, seed, undisturbed(name), run_starved if kind == STARVED else run_late)


def _as_it_is(connection: ClusterConnection, _: ExitStack) -> Any:
    return connection.kube


def outcome(
    name: str, directory: Path, disturb: Disturb, misbehaviours: tuple[str, ...] = (), lab_seed: int = 1
) -> RunResult:
    """The result of a run whose API client is what ``disturb`` returns, on a lab that misbehaves."""
    request = RunRequest(load(EXPERIMENTS / f"{name}.yaml"), directory, always_confirm, 1)
    with ExitStack() as stack:
        document = yaml.safe_load((ROOT / "hosts" / BUNDLED[name].notes["lab"]).read_text(encoding="utf-8"))
        requested = Inventory.model_validate(document)
        assert requested.lab is not None
        lab = stack.enter_context(start_lab(requested.lab, lab_seed, MisbehavingLab(misbehaviours=misbehaviours)))
        inventory = with_lab_cluster(requested, lab.inventory)
        connection = stack.enter_context(connect_cluster(inventory))
        connection = replace(connection, kube=disturb(connection, stack))
        return run(request, connection, NullProgress()).result


@cache
def undisturbed(name: str) -> Statuses:
    """The status of each expectation on a lab that behaves."""
    with TemporaryDirectory() as directory:
        return statuses(outcome(name, Path(directory), _as_it_is))

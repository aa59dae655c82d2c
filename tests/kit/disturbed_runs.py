"""Seeded runs whose watches are late, or whose API server is starved, and how their verdicts differ."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from chaos.app.confirmation import always_confirm
from chaos.app.connect import ClusterConnection, connect_cluster, with_lab_cluster
from chaos.app.labs import LabServeOptions, start_lab
from chaos.app.load import load
from chaos.app.null_progress import NullProgress
from chaos.app.registry import load_registry
from chaos.app.run import RunRequest, run
from chaos.model.inventory import Inventory, Lab
from chaos.model.result import RunResult
from chaos.model.verdict import Status, Verdict
from tests.kit.disturbing import Disturbance, DisturbedApi
from tests.kit.experiment_runs import BUNDLED
from tests.kit.processes import EXPERIMENTS, ROOT

NAMES = ("graceful-poweroff", "cordon", "no-execute-tolerated-for-a-time", "drain-blocked", "power-cut", "lease-stops")
LATE, STARVED = KINDS = ("late", "starved")
Disturb = Callable[[ClusterConnection, ExitStack], Any]


@dataclass(frozen=True, slots=True)
class MisbehavingLab(LabServeOptions):
    misbehaviours: tuple[str, ...] = ()

    def arguments(self, lab: Lab) -> list[str]:
        options = (option for name in self.misbehaviours for option in ("--misbehave", name))
        return [*LabServeOptions.arguments(self, lab), *options]


@dataclass
class Row:
    """One run. ``statuses`` and those of the run that is ``undisturbed``, by the expectation's name.

    ``refused``: why it ended before the fault. ``because``: of each verdict that differs, by name. ``reversed``: those
    of them that contradict the undisturbed run. ``unexcused``: late watches did not make these inconclusive, as all
    that happened by the deadline was delivered by then. ``cpu``, ``wall``: seconds, the lab's included.
    """

    kind: str
    seed: int
    experiment: str
    statuses: dict[str, str] = field(default_factory=dict)
    undisturbed: dict[str, str] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)
    reversed: list[str] = field(default_factory=list)
    unexcused: list[str] = field(default_factory=list)
    refused: str = ""
    cpu: float = 0.0
    wall: float = 0.0

    @property
    def wrong(self) -> list[str]:
        return [*self.reversed, *self.unexcused]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def disturbed(kind: str, seed: int, directory: Path) -> Row:
    """Run the experiment of this seed, and compare."""
    row = Row(kind, seed, NAMES[seed % len(NAMES)])
    expected = undisturbed(row.experiment)
    row.undisturbed = {name: str(status) for name, status in expected.items()}
    made: list[Disturbance] = []

    def disturb(connection: ClusterConnection, stack: ExitStack) -> Any:
        if kind == STARVED:
            return connection.kube
        made.append(stack.enter_context(Disturbance(connection.clock, seed).active()))
        return DisturbedApi(connection.kube, made[0])

    begin = _seconds()
    if kind == STARVED:
        result = outcome(row.experiment, directory, disturb, ("slow-answers",), seed)
    else:
        result = outcome(row.experiment, directory, disturb)
    row.cpu, row.wall = (round(now - then, 1) for now, then in zip(_seconds(), begin, strict=True))
    if result.status is Status.INCONCLUSIVE and not result.steps:
        row.refused = result.headline
    for verdict in () if row.refused else verdicts(result):
        _compare(row, verdict, expected[verdict.name])
        if verdict.status is Status.INCONCLUSIVE and made:
            deadline = verdict.deadline or min(step.begin or 0.0 for step in result.steps)
            if made[0].latest(deadline) <= deadline:
                row.unexcused.append(verdict.name)
    return row


def _compare(row: Row, verdict: Verdict, expected: Status) -> None:
    row.statuses[verdict.name] = str(verdict.status)
    if verdict.status is not expected:
        row.because[verdict.name] = verdict.because
        if verdict.status is not Status.INCONCLUSIVE:
            row.reversed.append(verdict.name)


def outcome(
    name: str, directory: Path, disturb: Disturb, misbehaviours: tuple[str, ...] = (), lab_seed: int = 1
) -> RunResult:
    """The result of a run whose API client is what ``disturb`` returns, on a lab that misbehaves."""
    registry = load_registry()
    request = RunRequest(load(EXPERIMENTS / f"{name}.yaml", registry), registry, directory, always_confirm, 1)
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
def undisturbed(name: str) -> dict[str, Status]:
    """The status of each expectation on a lab that behaves."""
    with TemporaryDirectory() as directory:
        result = outcome(name, Path(directory), lambda connection, _: connection.kube)
    return {verdict.name: verdict.status for verdict in verdicts(result)}


def verdicts(result: RunResult) -> tuple[Verdict, ...]:
    return (*result.hypothesis, *result.recovery)


def _seconds() -> tuple[float, float]:
    """CPU of this process and its children that have ended, and wall."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used), time.monotonic()

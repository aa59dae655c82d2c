"""Disturbed runs in the process of their lab, on simulated time: the observers, watches and proofs of every run.

As ``disturbed_runs`` over a network, with the same plans. The same seed gives the same run.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs

from chaos.app.cluster_lock import lock_namespace
from chaos.app.connect import ClusterConnection
from chaos.app.inventory_secrets import journal_signer
from chaos.app.load import load
from chaos.app.null_progress import NullProgress
from chaos.app.plan import plan
from chaos.app.registry import load_registry
from chaos.app.run_setup import RunSetup
from chaos.core.decode import decode
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.store.journal import Journal
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.lab.facade import LabSpec
from chaos.rehearsal.connection import connect_directly
from chaos.rehearsal.garbage import rare_collections
from chaos.rehearsal.judging import SparseJudge
from chaos.rehearsal.lock import SoleHolder
from tests.kit.disturbance import LATE, DisturbancePlan, Row, Statuses, measured, name_of, statuses
from tests.kit.lab_transport import lab_client
from tests.kit.processes import EXPERIMENTS
from tests.kit.rehearsals import settings_of, spec_of


@dataclass
class Rehearsal:
    """One run: its result, what it recorded, and its plan if watches were late."""

    result: RunResult
    plan: DisturbancePlan | None
    entries: list[RecordingEntry] = field(repr=False)


def disturbed(kind: str, seed: int) -> Row:
    """Run the experiment of this seed, and compare."""
    expected = undisturbed(name_of(seed))

    def run() -> tuple[RunResult, DisturbancePlan | None]:
        made = rehearse_disturbed(kind, seed)
        return made.result, made.plan

    return measured(kind, seed, expected, run)


def rehearse_disturbed(kind: str, seed: int) -> Rehearsal:
    """A run with late watches, or on a starved API server."""
    name = name_of(seed)
    return _rehearse(name, spec_of(name), seed) if kind == LATE else _rehearse(name, _starved(name, seed), None)


def _starved(name: str, seed: int) -> LabSpec:
    return structs.replace(spec_of(name), seed=seed, api_misbehaviours=["slow-answers"])


def starved(name: str, seed: int) -> Statuses:
    """The status of each expectation on a starved API server."""
    return statuses(_rehearse(name, _starved(name, seed), None).result)


@cache
def undisturbed(name: str) -> Statuses:
    """The status of each expectation on a lab that behaves."""
    return statuses(_rehearse(name, spec_of(name), None).result)


def _rehearse(name: str, spec: LabSpec, late_seed: int | None) -> Rehearsal:
    with ExitStack() as stack:
        stack.enter_context(rare_collections())
        directory = Path(stack.enter_context(TemporaryDirectory()))
        direct = stack.enter_context(connect_directly(spec, settings_of(name)))
        clock: Any = direct.ports.clock
        disturbance = DisturbancePlan(clock.now, late_seed) if late_seed is not None else None
        kube = lab_client(direct.lab, clock.threads, disturbance)
        entries: list[RecordingEntry] = []
        recorder = Recorder(decode, clock, entries.append)
        journal = stack.enter_context(Journal(directory))
        setup = _setup(name, replace(direct.ports, kube=kube), directory)
        return Rehearsal(execute(setup.context(journal, recorder, NullProgress())), disturbance, entries)


def _setup(name: str, connection: ClusterConnection, directory: Path) -> RunSetup:
    """As ``chaos.app.run.run`` makes it, but for the lock of a cluster that no one else knows of."""
    registry, numbers = load_registry(), count(1)
    loaded = load(EXPERIMENTS / f"{name}.yaml", registry)
    planned, view = plan(loaded, connection, registry, 1, f"{name}-000001", reports=directory)
    lock = SoleHolder(lock_namespace(connection))
    return RunSetup(
        loaded,
        registry,
        connection,
        planned,
        view,
        lock,
        journal_signer(connection),
        suffix=lambda: f"{next(numbers):016x}",
        judge=lambda live: SparseJudge(live, connection.clock),
    )

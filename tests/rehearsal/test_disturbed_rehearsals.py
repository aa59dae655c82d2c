"""Runs in process whose watches are late, doubled and in another order, or whose API server hardly answers.

No verdict differs from that of an undisturbed run, except that it is inconclusive; with late watches none is, if all
had come by its deadline. A part of the seeds here, all 500 of both with NODEFALL_DISTURBED=500 (``.ci/nightly``).
Figures are appended to the file NODEFALL_DISTURBED_FIGURES, run by run; what is in it already is skipped, so that 500
can be continued and divided. ``tools/disturbed_figures.py`` sums them up.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from msgspec import structs

from chaos.app.run.experiment import plan
from chaos.app.wiring.lock import journal_signer
from chaos.core.decode import decode
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.store.journal import Journal
from chaos.core.verdict import Status
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.engine.live_judge import judge_options
from chaos.engine.load import load
from chaos.engine.observers import build_observers, observe_cluster
from chaos.engine.progress import NullProgress
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.engine.session import RunSession
from chaos.lab.facade import LabSpec
from chaos.rehearsal.connection import connect_directly
from chaos.rehearsal.processes import rare_collections
from chaos.rehearsal.run import SoleHolder, SparseJudge
from tests.kit.disturbance import (
    KINDS,
    LATE,
    NAMES,
    STARVED,
    DisturbancePlan,
    Row,
    Statuses,
    measured,
    name_of,
    statuses,
)
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
        session = _session(name, replace(direct.ports, kube=kube), journal, recorder)
        return Rehearsal(execute(session), disturbance, entries)


def _session(name: str, connection: ClusterConnection, journal: Journal, recorder: Recorder) -> RunSession:
    """As ``chaos.app.run.experiment.run`` makes it, but for the lock of a cluster that no one else knows of."""
    numbers, clock, progress = count(1), connection.clock, NullProgress()
    loaded = load(EXPERIMENTS / f"{name}.yaml")
    planned, view = plan(loaded, connection, 1, f"{name}-000001", reports=journal.path.parent)
    observers = build_observers(loaded, connection, planned, observe_cluster(loaded, connection, progress.note))
    return RunSession(
        loaded,
        connection,
        planned,
        SoleHolder(lock_namespace(connection)),
        journal_signer(connection),
        journal,
        recorder,
        progress,
        observers,
        SparseJudge(loaded, recorder, judge_options(planned, connection), observers, clock=clock),
        len(view.nodes),
        event_suffix=lambda: f"{next(numbers):016x}",
    )


COUNT = int(os.environ.get("NODEFALL_DISTURBED", "0"))
FIGURES = os.environ.get("NODEFALL_DISTURBED_FIGURES")
SEEDS = {LATE: range(COUNT or 6), STARVED: range(COUNT or 1)}  # the latter take four times as long
SLOW_STEP = (STARVED, 38)  # the taint is set 27 s after the start of its step
RUNS = list(dict.fromkeys([*((kind, seed) for kind in KINDS for seed in SEEDS[kind]), SLOW_STEP]))


@pytest.mark.parametrize(("kind", "seed"), RUNS)
def test_no_verdict_is_reversed(seed: int, kind: str) -> None:
    if (kind, seed) in finished():
        pytest.skip(f"{FIGURES} has it")
    row = disturbed(kind, seed)
    if FIGURES:
        with Path(FIGURES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row.as_dict()) + "\n")
    assert not row.wrong, row
    assert kind == LATE or not row.refused, row


def finished() -> set[tuple[str, int]]:
    """The kinds and seeds that the figures have."""
    if not FIGURES or not Path(FIGURES).exists():
        return set()
    rows = map(json.loads, Path(FIGURES).read_text(encoding="utf-8").splitlines())
    return {(row["kind"], row["seed"]) for row in rows}


@pytest.mark.parametrize("name", NAMES if COUNT else NAMES[1:2])
def test_undisturbed_all_hold(name: str) -> None:
    assert set(undisturbed(name).values()) == {Status.HELD}


def test_a_node_that_the_undo_removes_as_its_watch_notices_is_not_missed() -> None:
    assert set(undisturbed("hand-made-node").values()) == {Status.HELD}


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param("announced-again", 1, marks=pytest.mark.nightly),
        pytest.param("drain-example", 1, marks=pytest.mark.nightly),
        pytest.param("evictions-at-once", 4, marks=pytest.mark.nightly),
        ("no-execute-removed-in-time", 1),
        ("stale-disruption-target", 1),
        pytest.param("total-outage", 1, marks=pytest.mark.nightly),
    ],
)
def test_what_a_slow_server_delays_is_not_violated(name: str, seed: int) -> None:
    """A step that undoes the one before comes 40 s after it, and not 2 s as the experiment has it."""
    assert Status.VIOLATED not in starved(name, seed).values()


@pytest.mark.slow
def test_an_etcd_that_reports_progress_every_ten_minutes_delays_no_recovery() -> None:
    """Lists decide it: bookmarks, which prove that nothing came and went, are older than its five minutes."""
    spec = structs.replace(spec_of("drain-allowed"), api_misbehaviours=["idle-bookmarks"])
    assert set(statuses(_rehearse("drain-allowed", spec, None).result).values()) == {Status.HELD}


@pytest.mark.parametrize("kind", KINDS if COUNT else [LATE])
def test_the_same_seed_gives_the_same_run(kind: str) -> None:
    one, two = (msgspec.json.encode(rehearse_disturbed(kind, 1).entries) for _ in range(2))
    assert one == two

"""One run from an open cluster to its report."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import structs

from chaos import __version__
from chaos.app.cluster_lock import hold_lock, refuse_pending_undo, remove_finished_runs
from chaos.app.confirmation import Confirm, nodes_taken_down
from chaos.app.connect import ClusterConnection, refuse_before_side_effects
from chaos.app.judge import JudgedRun
from chaos.app.load import LoadedExperiment
from chaos.app.observer_setup import build_observers
from chaos.app.pending_undo_guard import guard_pending_undo
from chaos.app.plan import new_run_id, plan
from chaos.engine.context import RunContext, StopRequest
from chaos.engine.recorder import Recorder
from chaos.engine.run import WORKLOAD, RunInputs, execute
from chaos.judge.context import PLURALS, Options, bind
from chaos.judge.judge import judge, steady_state
from chaos.kube.journal_mirror import JournalMirror, RunIdentity
from chaos.kube.lease_lock import ClusterLock
from chaos.kube.node_events import NodeEvents
from chaos.kube.workload import create_commands
from chaos.model.decode import decode
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit, Refused
from chaos.model.plan import Plan
from chaos.model.ports import Progress
from chaos.model.recording import OVERRIDDEN, WARNINGS
from chaos.model.registry import PluginRegistry
from chaos.model.result import RunResult
from chaos.model.timeline import Timeline
from chaos.model.verdict import Status, Verdict
from chaos.plan.cluster import ClusterView
from chaos.plan.stale import check_age, check_unchanged
from chaos.store import run_directory
from chaos.store.journal import Journal
from chaos.store.process_lock import exclusive_lock
from chaos.store.recording import RecordingWriter


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was asked for."""

    loaded: LoadedExperiment
    registry: PluginRegistry
    reports: Path
    confirm: Confirm
    seed: int | None = None
    record: Path | None = None
    plan: Plan | None = None  # one that was read and is to be done as it is
    anyway: bool = False


@dataclass(frozen=True, slots=True)
class Run(JudgedRun):
    """A run that is over, and its directory."""

    directory: Path

    @property
    def report(self) -> Path:
        """The report to look at."""
        return self.directory / "report.html"


def run(request: RunRequest, opened: ClusterConnection, progress: Progress) -> Run:
    """Run it.

    Raises NodefallError before anything was touched, and UndoOwed where not even the undoing could be finished.
    """
    with ExitStack() as stack:
        stack.enter_context(exclusive_lock(f"{opened.uid} {opened.kube.server}"))
        stack.enter_context(opened.clock.participant())
        kept = request.plan
        name = kept.run if kept else new_run_id(request.loaded)
        with refuse_before_side_effects():
            lock = stack.enter_context(hold_lock(opened, name, partial(_before_lock_wait, opened, progress)))
            remove_finished_runs(opened)
            progress.phase("plan")
            anyway = request.anyway or bool(kept and kept.overridden)
            planned, view = plan(request.loaded, opened, request.registry, request.seed, name, anyway=anyway)
            if kept:
                check_unchanged(kept, planned)
                check_age(kept, opened.clock.now())
            request.confirm(planned, opened, nodes_taken_down(planned, opened, request.registry))
            check_age(planned, opened.clock.now())
        directory = run_directory.create(request.reports, planned.experiment, opened.clock.now())
        try:
            _save_inputs(directory, request, opened, planned, lock.identity.holder)
            writer = RecordingWriter(directory / run_directory.RECORDING)
        except OSError as error:
            raise Refused(f"{error.filename or directory} cannot be written: {error.strerror}") from error
        stack.callback(_close, writer)
        journal = stack.enter_context(Journal(directory))
        recorder = Recorder(decode, opened.clock, writer.write)
        context = _context(request, opened, planned, journal, recorder, progress, lock)
        lock.on_abort = context.stop.request
        eyes = build_observers(request.loaded.experiment, request.registry, opened, planned)
        prepared = RunInputs(
            observers=eyes.stages,
            workload=create_commands(request.loaded.manifests, planned.namespace, planned.run)
            if planned.namespace
            else (),
            meta=_meta(opened, planned, view) | {"by": lock.identity.holder, "nodefall": __version__},
            final_samples=eyes.final_samples,
        )
        with _handle_signals(context.stop, opened), guard_pending_undo(directory):
            result = execute(context, prepared)
            timeline = recorder.snapshot()
        closing = _close(writer)
    return _write_reports(Run(result, timeline, directory), request.record, recorder.failure or closing)


def _before_lock_wait(opened: ClusterConnection, progress: Progress, why: str) -> None:
    """For a lock whose holder seems to have died: in vain if it died owing something. Raises Refused."""
    refuse_pending_undo(opened)
    progress.note(why)


def _close(writer: RecordingWriter) -> OSError | None:
    try:
        writer.close()
    except OSError as error:
        return error
    return None


def _write_reports(run: Run, record: Path | None, failure: OSError | None) -> Run:
    """Write the report. What could not be written is noted, and then nothing counts as held: its evidence is lost."""
    if failure:
        run = _with_note(run, f"the recording is not whole: {failure}")
    try:
        run.write(run.directory)
    except OSError as error:
        run = _with_note(run, f"the report could not be written: {error}")
    if record:
        try:
            shutil.copyfile(run.directory / run_directory.RECORDING, record)
        except OSError as error:
            run = _with_note(run, f"--record: the recording could not be copied: {error}")
    return run


def _with_note(run: Run, lost: str) -> Run:
    result = structs.replace(run.result, notes=(*run.result.notes, lost))
    if result.exit_code == Exit.HELD:
        code, headline = int(Exit.INCONCLUSIVE), f"all expectations held, but {lost}"
        result = structs.replace(result, exit_code=code, status=Status.INCONCLUSIVE, headline=headline)
    return replace(run, result=result)


def _save_inputs(directory: Path, request: RunRequest, opened: ClusterConnection, planned: Plan, holder: str) -> None:
    """Who did it, what undo needs to find the cluster again, the plan and the experiment as it was."""
    inventory = opened.inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    info = run_directory.RunInfo(
        planned.run, planned.experiment, planned.created, inventory, opened.lab_pid, opened.uid, holder, __version__
    )
    run_directory.save(directory, run_directory.RUN, info)
    run_directory.save(directory, run_directory.PLAN, planned)
    shutil.copyfile(request.loaded.path, directory / run_directory.EXPERIMENT)


def _unobserved_objects(manifests: list[dict[str, Any]], namespace: str, timeline: Timeline) -> Iterator[Verdict]:
    """Objects of the workload that were not seen yet: each kind is watched by itself, and one may be late."""
    for manifest in manifests:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if kind in PLURALS and (PLURALS[kind], namespace, name) not in timeline.workloads:
            yield Verdict(f"{kind} {name}", WORKLOAD, Status.PENDING, "it was not seen yet")


def _context(
    request: RunRequest,
    opened: ClusterConnection,
    planned: Plan,
    journal: Journal,
    recorder: Recorder,
    progress: Progress,
    lock: ClusterLock,
) -> RunContext:
    experiment = request.loaded.experiment
    debtor = RunIdentity(planned.run, planned.experiment, planned.created, lock.identity.holder)
    ledger = JournalMirror(opened.kube, lock.namespace, debtor, journal)
    options = judge_options(opened, planned)

    def judged(live: bool) -> RunResult:
        with recorder.lock_timeline() as timeline:
            return judge(experiment, timeline, request.registry, options, live=live)

    def steady() -> tuple[Verdict, ...]:
        with recorder.lock_timeline() as timeline:
            seen = steady_state(bind(experiment, timeline, request.registry, options, live=True), timeline.end)
            return (*seen, *_unobserved_objects(request.loaded.manifests, planned.namespace, timeline))

    return RunContext(
        experiment=experiment,
        plan=planned,
        clock=opened.clock,
        kube=opened.kube,
        hosts=opened.hosts,
        journal=journal,
        progress=progress,
        emit=recorder.emit,
        judge=judged,
        judge_steady_state=steady,
        deadline=opened.clock.now() + parse_duration(experiment.spec.max_duration),
        guard=lock,
        publish=ledger.publish,
        reconcile=ledger.reconcile,
        events=_node_events(opened, planned, lock.identity.holder),
    )


def _node_events(opened: ClusterConnection, planned: Plan, holder: str) -> NodeEvents | None:
    if opened.inventory.cluster is None or not opened.inventory.cluster.events:
        return None
    return NodeEvents(opened.kube, planned.run, holder, {t.node: t.uid for t in planned.targets})


def judge_options(opened: ClusterConnection, planned: Plan) -> Options:
    """What the judge need not find out from the timeline."""
    bind: dict[str, tuple[str, ...]] = {}
    for target in planned.targets:
        bind[target.target] = (*bind.get(target.target, ()), target.node)
    facts = opened.inventory.cluster.facts if opened.inventory.cluster else {}
    return Options(bind=bind, namespace=planned.namespace, inventory=facts)


def _meta(opened: ClusterConnection, planned: Plan, view: ClusterView) -> dict[str, object]:
    cluster = opened.inventory.cluster
    return {
        "run": planned.run,
        "experiment": planned.experiment,
        "planHash": planned.hash,
        "experimentHash": planned.experiment_hash,
        "seed": planned.seed,
        "kubernetes": opened.version,
        "clusterUID": opened.uid,
        "simulated": bool(cluster and cluster.simulated),
        "targets": {t.node: t.target for t in planned.targets},
        "workload": planned.namespace,
        "nodes": len(view.nodes),
        **({OVERRIDDEN: planned.overridden} if planned.overridden else {}),
        **({WARNINGS: planned.warnings} if planned.warnings else {}),
    }


@contextmanager
def _handle_signals(stop: StopRequest, opened: ClusterConnection) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM stops the run and undoes it; later ones do not stop the undoing.

    A terminal that goes away (SIGHUP) counts as SIGTERM, unless nohup told us not to mind. Signals are the main
    thread's: in another nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(signum: int, _: FrameType | None) -> None:
        if stop.signum is None:
            stop.signum = signal.SIGTERM if signum == signal.SIGHUP else signum
            opened.clock.wake()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)

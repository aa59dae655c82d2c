"""Plans an experiment on an open cluster, and runs it from the plan to the reports."""

from __future__ import annotations

import logging
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from chaos.app.run.results import Run, close_recording, create_directory, report_refusal, write_reports
from chaos.app.undo.pending import guard_pending_undo, refuse_pending_undo, remove_finished_runs, with_pending_undo
from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.lock import hold_lock, hold_machine_lock, journal_signer
from chaos.app.wiring.logs import RunLog, run_log
from chaos.cluster.cluster_state import cluster_view, refuse_missing
from chaos.core.cluster_view import ClusterView
from chaos.core.decode import decode
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan, nodes_by_target
from chaos.core.ports import Progress, RunWatcher
from chaos.core.store.journal import Journal
from chaos.core.store.recording_writer import RecordingWriter
from chaos.engine.connection import ClusterConnection, refuse_before_side_effects
from chaos.engine.live_judge import LiveJudge, judge_options
from chaos.engine.load import LoadedExperiment, required_permissions
from chaos.engine.local_identity import own_node
from chaos.engine.observers import build_observers, observe_cluster, source_checks
from chaos.engine.planning.permissions import refuse_unreviewed
from chaos.engine.planning.planner import check_age, check_unchanged, make_plan
from chaos.engine.planning.targets import planned_targets, select_nodes, select_workload_nodes
from chaos.engine.preflight.collect import CHECKS, PreflightCase, collect
from chaos.engine.preflight.findings import describe, refuse, run_checks, warnings
from chaos.engine.progress import LoggedProgress, Unwatched
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.engine.session import NoOwner, RunOwner, RunSession
from chaos.engine.stop import stop_on_signal, stop_run
from chaos.lab.facade import rejections


def new_run_id(loaded: LoadedExperiment) -> str:
    """A unique run ID."""
    return f"{loaded.experiment.metadata.name}-{secrets.token_hex(3)}"


def plan(
    loaded: LoadedExperiment,
    connection: ClusterConnection,
    seed: int | None,
    run: str,
    *,
    reports: Path,
    anyway: bool = False,
) -> tuple[Plan, ClusterView]:
    """Select targets, collect facts, run preflight checks and plan every step. No side effects but helper pods.

    ``reports``: runs below it may have a pending undo. ``anyway`` overrides refusals that are not final. Raises
    NodefallError.
    """
    loaded.registry.bind(loaded.experiment)
    refuse_unsimulated(loaded, connection.inventory)
    needed = required_permissions(loaded, connection.inventory)
    refuse_missing(connection.kube, needed, connection.clock.threads)
    seed = secrets.randbits(32) if seed is None else seed
    for check in source_checks(loaded.experiment, connection).values():
        check()
    view = cluster_view(connection.kube, connection.uid)
    targets = planned_targets(loaded.experiment)
    nodes = select_nodes(targets, view, connection.inventory, seed, own_node(view))
    case = PreflightCase(loaded, nodes, run=run, seed=seed)
    data = collect([case], connection, view, same_run=True)
    findings = run_checks(CHECKS, with_pending_undo(data.observations, connection, reports))
    overridden = refuse(findings, anyway=anyway)
    planned = make_plan(loaded.experiment, data.drafts[case.name])
    refuse_unreviewed(planned, needed)
    messages = tuple(describe(finding) for finding in warnings(findings))
    confined = select_workload_nodes(targets, nodes, view, connection.inventory, seed)
    cluster = connection.inventory.cluster
    slack = cluster.slack if cluster else 1.0
    return structs.replace(
        planned, overridden=overridden, warnings=messages, workload_nodes=confined, slack=slack
    ), view


def refuse_unsimulated(loaded: LoadedExperiment, inventory: Inventory) -> None:
    """Raise Refused if the cluster is a lab that would reject the workload."""
    if inventory.cluster is None or not inventory.cluster.simulated:
        return
    found = rejections(loaded.manifests)
    if found:
        obj = loaded.manifests[found[0][0]]
        what = f"{obj['kind']} {obj['metadata'].get('name', '')}".rstrip()
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        hint = "change the workload, or run the experiment on a real cluster: docs/lab.md lists what a lab simulates"
        raise Refused(f"the lab rejects {what} of the workload: {found[0][1]}{more}", hint=hint)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster of a plan. ``server``: the URL of its API server; ``version``: that of Kubernetes."""

    inventory: Inventory
    server: str
    uid: str
    version: str


Confirm = Callable[[Plan, ClusterInfo, list[str]], None]
"""Called with a plan, its cluster and the real machines that would go down. Raises Refused to cancel the run."""


def nodes_taken_down(plan: Plan, connection: ClusterConnection, loaded: LoadedExperiment) -> list[str]:
    """Names of the real machines that the plan takes down; none in a simulated cluster."""
    cluster = connection.inventory.cluster
    if cluster is None or cluster.simulated:
        return []
    down = {step.name for step in loaded.experiment.spec.method if step.bound.action.takes_down}
    return sorted({step.node for step in plan.steps if step.step in down})


def always_confirm(plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:
    """Confirm every plan."""


def refuse_unconfirmed(plan: Plan, cluster: ClusterInfo, nodes: list[str]) -> None:  # noqa: ARG001 - a Confirm
    """Refuse plans that take machines down, for callers who cannot ask a person. Raises Refused."""
    if nodes:
        raise Refused(f"not confirmed: the run takes down {', '.join(nodes)}", hint="pass agree=True to confirm")


logger = logging.getLogger(__name__)
_NO_OWNER, _UNWATCHED = NoOwner(), Unwatched()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was asked of one run. ``plan``: a saved plan to execute unchanged, instead of making a new one.

    ``run_id``: the run's ID, "" for a new one. ``awaits_lock``: wait for the cluster's lock as long as its holder may
    be dead, instead of refusing the run immediately. ``series``: "2 of 5" for the second run of a series of five.
    """

    loaded: LoadedExperiment
    reports: Path
    confirm: Confirm
    seed: int | None = None
    record: Path | None = None
    plan: Plan | None = None
    anyway: bool = False
    run_id: str = ""
    awaits_lock: bool = False
    series: str = ""

    @property
    def overrides_preflight(self) -> bool:
        """Whether refusals of preflight that are not final are overridden."""
        return self.anyway or bool(self.plan and self.plan.overridden)


def _identified(request: RunRequest) -> RunRequest:
    """The request with the ID of its run."""
    run_id = request.plan.run if request.plan else request.run_id or new_run_id(request.loaded)
    return replace(request, run_id=run_id)


@contextmanager
def connect_run(request: RunRequest, inventory: Inventory, progress: Progress) -> Iterator[ClusterConnection]:
    """Connect to the cluster of a run for the block. A refusal has a report. Raises NodefallError."""
    with ExitStack() as stack:
        try:
            with refuse_before_side_effects():
                connection = stack.enter_context(connect_cluster(inventory, seed=request.seed))
        except Refused as error:
            run_id = _identified(request).run_id
            progress.note(report_refusal(error, request.reports, request.loaded, run_id, inventory))
            raise
        yield connection


def run(
    request: RunRequest,
    connection: ClusterConnection,
    progress: Progress,
    owner: RunOwner = _NO_OWNER,
    watcher: RunWatcher = _UNWATCHED,
) -> Run:
    """Plan, inject, observe, roll back, judge and report. ``watcher`` is shown the run while it is in progress.

    Raises NodefallError if the run ends before any side effect, and UndoPending if the rollback did not finish.
    """
    request = _identified(request)
    with run_log() as log:
        try:
            finished, failure = _run_locked(request, connection, LoggedProgress(progress), owner, watcher, log)
        except Refused as error:
            progress.note(report_refusal(error, request.reports, request.loaded, request.run_id, connection))
            raise
        if request.series:
            finished = replace(finished, result=structs.replace(finished.result, series=request.series))
        return write_reports(finished, request.record, failure)


def _run_locked(
    request: RunRequest,
    connection: ClusterConnection,
    progress: Progress,
    owner: RunOwner,
    watcher: RunWatcher,
    log: RunLog,
) -> tuple[Run, OSError | None]:
    """The run, with the locks of this machine and of the cluster held; and what failed of its recording."""
    loaded, clock = request.loaded, connection.clock
    with ExitStack() as stack:
        machine = stack.enter_context(hold_machine_lock(connection))
        stack.enter_context(clock.participant())
        run_id = request.run_id
        with refuse_before_side_effects():
            on_wait = partial(_before_lock_wait, request, connection, progress)
            connection.label_helpers(run_id)
            awaits = request.awaits_lock
            lock = stack.enter_context(hold_lock(connection, machine, run_id, on_wait, wait_for_holder=awaits))
            remove_finished_runs(connection, request.reports, progress.note)
            signer = journal_signer(connection)
            progress.phase("plan")
            planned, view = _confirmed_plan(request, connection, run_id)
        directory, writer = create_directory(request.reports, loaded, connection, planned, lock.identity.holder)
        log.open(directory)
        logger.info("run %s of %s on %s", planned.run, planned.experiment, connection.kube.server)
        stack.callback(close_recording, writer)
        journal = stack.enter_context(Journal(directory))
        recorder = Recorder(decode, clock, writer.write, watcher.entry)
        observers = build_observers(loaded, connection, planned, observe_cluster(loaded, connection, progress.note))
        judge = LiveJudge(loaded, recorder, judge_options(planned, connection), observers, watcher)
        ports = (lock, signer, journal, recorder, progress, observers, judge)
        session = RunSession(loaded, connection, planned, *ports, len(view.nodes), owner)
        lock.on_abort = recorder.on_flood = session.stop.request
        lock.on_crash = session.stop.report_crash
        lock.on_loss = session.stop.report_loss
        return carry_out(session, recorder, watcher, directory, writer)


def carry_out(
    session: RunSession, recorder: Recorder, watcher: RunWatcher, directory: Path, writer: RecordingWriter
) -> tuple[Run, OSError | None]:
    """Execute the run, which a signal stops; and what failed of its recording."""
    stop = partial(stop_run, session.stop, session.clock)
    permissions = required_permissions(session.loaded, session.connection.inventory)
    limited = session.connection.hosts.limited_to(permissions)
    with stop_on_signal(stop), guard_pending_undo(directory), limited:
        session.owner.begin(directory, session.stop)
        watcher.begin(nodes_by_target(session.plan.targets), partial(stop, signal.SIGINT))
        result = execute(session)
        timeline = recorder.timeline()
        session.progress.phase("report")  # what a view's key to stop does ends here, before the signal handler
    failure = close_recording(writer)
    return Run(result, timeline, directory), recorder.failure or failure


def _before_lock_wait(request: RunRequest, connection: ClusterConnection, progress: Progress, reason: str) -> None:
    """Waiting for the lock of a holder that has died is in vain if it left a pending undo. Raises Refused."""
    refuse_pending_undo(connection, request.reports, progress.note)
    progress.note(reason)


def _confirmed_plan(request: RunRequest, connection: ClusterConnection, run_id: str) -> tuple[Plan, ClusterView]:
    """A new plan; one that was saved must not differ from it, nor be too old. Raises Refused."""
    anyway = request.overrides_preflight
    planned, view = plan(request.loaded, connection, request.seed, run_id, reports=request.reports, anyway=anyway)
    if request.plan:
        check_unchanged(request.plan, planned)
        check_age(request.plan, connection.clock.now())
    info = ClusterInfo(connection.inventory, connection.kube.server, connection.uid, connection.version)
    request.confirm(planned, info, nodes_taken_down(planned, connection, request.loaded))
    check_age(planned, connection.clock.now())
    return planned, view

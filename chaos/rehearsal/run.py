"""One experiment on one simulated cluster, from its plan to its verdicts, in this process and on simulated time alone.

With a run directory, if it is to be stored: the files of any run, for all commands that read one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from chaos.app.run.experiment import carry_out, new_run_id, plan
from chaos.app.run.results import JudgedRun, Run, close_recording, create_directory, write_reports
from chaos.app.wiring.lock import journal_signer, own_identity
from chaos.app.wiring.logs import RunLog, run_log
from chaos.cluster.lease_lock import Identity
from chaos.core.cluster_view import ClusterView
from chaos.core.decode import decode
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.core.ports import Clock, Progress
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.store.journal import Journal
from chaos.core.store.recording_writer import write_recording
from chaos.engine.connection import lock_namespace, refuse_before_side_effects
from chaos.engine.live_judge import LiveJudge, judge_options
from chaos.engine.load import LoadedExperiment
from chaos.engine.observers import build_observers
from chaos.engine.progress import LoggedProgress, NullProgress, Unwatched
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.engine.session import NoOwner, RunSession
from chaos.lab.facade import LabSpec
from chaos.rehearsal.connection import DirectConnection, Populate, connect_directly, leave_empty
from chaos.rehearsal.kube import DirectObservers
from chaos.rehearsal.processes import rare_collections

_SETTLE = 2.0  # seconds; over a network, a run waits that long for proofs of what it has seen
HOLDER = "rehearsal"
PERIOD = 5.0  # seconds of cluster time by which a proof, or the end of the observation, may be noticed later


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """``settings``: the inventory whose limits and protected nodes apply. ``recording``: a new file to write.

    ``populate`` creates what runs on the cluster before the experiment, and lets it settle. ``period``: see
    :class:`SparseJudge`.
    """

    settings: Inventory | None = None
    recording: Path | None = None
    period: float = PERIOD
    populate: Populate = leave_empty
    progress: Progress = field(default_factory=NullProgress)


_DEFAULTS = RehearsalOptions()


def rehearse_once(
    loaded: LoadedExperiment, lab_spec: LabSpec, seed: int, options: RehearsalOptions = _DEFAULTS
) -> JudgedRun:
    """Run the experiment on a new lab. Raises Refused for what a rehearsal cannot do, and as a run over a network."""
    refuse_outside_world(loaded)
    with rare_collections():
        spec = msgspec.structs.replace(lab_spec, seed=seed)
        with connect_directly(spec, options.settings, options.populate) as connection:
            return rehearse_on(connection, loaded, seed, options)


def rehearse_on(
    connection: DirectConnection, loaded: LoadedExperiment, seed: int, options: RehearsalOptions = _DEFAULTS
) -> JudgedRun:
    """Run the experiment on a lab that has started; ``seed`` selects the targets. Raises as a run over a network."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="nodefall-")))
        planned = plan_rehearsal(connection, loaded, seed, f"{loaded.experiment.metadata.name}-{seed:06x}")
        entries: list[RecordingEntry] = []
        recorder = Recorder(decode, connection.ports.clock, entries.append if options.recording else None)
        journal = stack.enter_context(Journal(directory))
        session = make_session(connection, loaded, planned, journal, recorder, options)
        result = execute(session)
        if options.recording:
            write_recording(options.recording, entries)
        return JudgedRun(result, recorder.timeline())


def plan_rehearsal(
    connection: DirectConnection, loaded: LoadedExperiment, seed: int, run_id: str
) -> tuple[Plan, ClusterView]:
    """The plan, and the cluster that it was made for. Raises NodefallError."""
    connection.ports.label_helpers(run_id)
    with refuse_before_side_effects(), TemporaryDirectory(prefix="nodefall-") as no_runs:  # the cluster is a new one
        return plan(loaded, connection.ports, seed, run_id, reports=Path(no_runs))


def make_session(
    connection: DirectConnection,
    loaded: LoadedExperiment,
    planned: tuple[Plan, ClusterView],
    journal: Journal,
    recorder: Recorder,
    options: RehearsalOptions,
    identity: Identity | None = None,
) -> RunSession:
    """The run of a plan, with the ports of a rehearsal.

    ``identity``: of the process whose run someone watches, so that it is judged at every tick.
    """
    ports, clock, (plan_, view), numbers = connection.ports, connection.ports.clock, planned, count(1)
    lock = SoleHolder(lock_namespace(ports), identity) if identity else SoleHolder(lock_namespace(ports))
    observers = build_observers(loaded, ports, plan_, DirectObservers(connection.lab, clock))
    judged = (loaded, recorder, judge_options(plan_, ports), observers)
    return RunSession(
        loaded,
        ports,
        plan_,
        lock,
        journal_signer(ports),
        journal,
        recorder,
        options.progress,
        observers,
        LiveJudge(*judged) if identity else SparseJudge(*judged, clock=clock, period=options.period),
        len(view.nodes),
        Settling(clock),
        lambda: f"{next(numbers):016x}",
    )


@dataclass(frozen=True, slots=True)
class Settling(NoOwner):
    """Lets the workload, which has only just become ready, settle before the fault."""

    clock: Clock

    def before_fault(self) -> None:
        self.clock.sleep(_SETTLE)


def refuse_outside_world(loaded: LoadedExperiment) -> None:
    """Raises Refused for what an experiment asks of the network."""
    spec = loaded.experiment.spec
    hint = "run the experiment on a lab instead"
    if spec.queries:
        raise Refused("queries: a rehearsal has no Prometheus", hint=hint)
    for probe in spec.probes:
        if not probe.service:
            raise Refused(
                f"probe {probe.name}: the only network in a rehearsal is the network of its Services", hint=hint
            )


@dataclass
class SoleHolder:
    """Implements ``chaos.engine.session.HeldLock``: it is held for as long as the cluster exists."""

    namespace: str
    identity: Identity = field(default_factory=lambda: Identity(HOLDER, {}))
    loss: str = ""

    def renew(self) -> bool:
        return True

    def check(self) -> None:
        """Return: the lock is held."""

    def blocked(self) -> str:
        return ""

    def regain(self, pause: Callable[[], object]) -> str:  # noqa: ARG002 - of the port
        return ""


@dataclass
class SparseJudge(LiveJudge):
    """Judges all after each phase of a step and each moment that decides, and every ``period`` of ``clock``.

    The abort conditions are judged at every tick.
    """

    clock: Clock = field(kw_only=True)
    period: float = field(kw_only=True, default=PERIOD)
    _judged_at: float = 0.0
    _actions: int = 0
    _last: RunResult | None = None

    def judge(self, live: bool) -> RunResult:
        """As :meth:`LiveJudge.judge`; of a live run it may be the judgement of some ticks ago."""
        now = self.clock.now()
        actions = len(self.recorder.timeline().actions)
        if live and self._last and not self._is_due(now, actions) and not self.violated_conditions():
            return self._last
        self._judged_at, self._actions, self._last = now, actions, super().judge(live)
        return self._last

    def _is_due(self, now: float, actions: int) -> bool:
        if actions != self._actions or now >= self._judged_at + self.period:
            return True
        return any(self._judged_at < moment <= now for moment in self.deadlines)


logger = logging.getLogger(__name__)


def rehearse_and_store(
    loaded: LoadedExperiment, lab_spec: LabSpec, seed: int, reports: Path, options: RehearsalOptions
) -> Run:
    """As :func:`chaos.rehearsal.run.rehearse_once`, with a new directory below ``reports``.

    In the main thread, the first SIGINT or SIGTERM stops the run, which undoes and returns that ``exit_code``. If the
    process is killed, ``nodefall undo`` finds that the cluster is gone with it. ``options.recording`` is a copy.
    """
    refuse_outside_world(loaded)
    with run_log() as log:
        progress = LoggedProgress(options.progress)
        with rare_collections():
            spec = msgspec.structs.replace(lab_spec, seed=seed)
            with connect_directly(spec, options.settings, options.populate) as connection:
                progress.phase("plan")
                planned = plan_rehearsal(connection, loaded, seed, new_run_id(loaded))
                logged = replace(options, progress=progress)
                finished, failure = _execute(connection, loaded, planned, reports, logged, log)
        return write_reports(finished, options.recording, failure)


def _execute(
    connection: DirectConnection,
    loaded: LoadedExperiment,
    planned: tuple[Plan, ClusterView],
    reports: Path,
    options: RehearsalOptions,
    log: RunLog,
) -> tuple[Run, OSError | None]:
    """The run, and what failed of its recording."""
    ports, (plan, _), identity = replace(connection.ports, lab_pid=os.getpid()), planned, own_identity(planned[0].run)
    directory, writer = create_directory(reports, loaded, ports, plan, identity.holder)
    with ExitStack() as stack:
        log.open(directory)
        logger.info("run %s of %s, simulated in this process", plan.run, plan.experiment)
        stack.callback(close_recording, writer)
        journal = stack.enter_context(Journal(directory))
        recorder = Recorder(decode, ports.clock, writer.write)
        session = make_session(connection, loaded, planned, journal, recorder, options, identity)
        return carry_out(session, recorder, Unwatched(), directory, writer)

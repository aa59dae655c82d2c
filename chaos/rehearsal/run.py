"""One experiment on one simulated cluster, from its plan to its verdicts, in this process and on simulated time alone.

The same experiment, lab and seed give the same recording, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from chaos.app.cluster_lock import lock_namespace
from chaos.app.connect import ClusterConnection, refuse_before_side_effects
from chaos.app.inventory_secrets import journal_signer
from chaos.app.judge import JudgedRun
from chaos.app.load import LoadedExperiment
from chaos.app.null_progress import NullProgress
from chaos.app.plan import plan
from chaos.app.run_setup import RunSetup
from chaos.core.decode import decode
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.ports import Clock, Progress
from chaos.core.recording import RecordingEntry
from chaos.core.registry import PluginRegistry
from chaos.core.store.journal import Journal
from chaos.core.store.recording_writer import write_recording
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.lab.facade import LabSpec
from chaos.rehearsal.connection import DirectConnection, Populate, connect_directly, leave_empty
from chaos.rehearsal.garbage import rare_collections
from chaos.rehearsal.judging import SparseJudge
from chaos.rehearsal.lock import SoleHolder
from chaos.rehearsal.observers import DirectObservers

_SETTLE = 2.0  # seconds; over a network, a run waits that long for proofs of what it has seen


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """``settings``: the inventory whose limits and protected nodes apply. ``recording``: a new file to write.

    ``populate`` creates what runs on the cluster before the experiment, and lets it settle.
    """

    settings: Inventory | None = None
    recording: Path | None = None
    populate: Populate = leave_empty
    progress: Progress = field(default_factory=NullProgress)


_DEFAULTS = RehearsalOptions()


def rehearse_once(
    loaded: LoadedExperiment,
    registry: PluginRegistry,
    lab_spec: LabSpec,
    seed: int,
    options: RehearsalOptions = _DEFAULTS,
) -> JudgedRun:
    """Run the experiment on a new lab. Raises Refused for what a rehearsal cannot do, and as ``chaos.app.run.run``."""
    refuse_outside_world(loaded)
    with rare_collections():
        spec = msgspec.structs.replace(lab_spec, seed=seed)
        with connect_directly(spec, options.settings, options.populate) as connection:
            return rehearse_on(connection, loaded, registry, seed, options)


def rehearse_on(
    connection: DirectConnection,
    loaded: LoadedExperiment,
    registry: PluginRegistry,
    seed: int,
    options: RehearsalOptions = _DEFAULTS,
) -> JudgedRun:
    """Run the experiment on a lab that has started; ``seed`` selects the targets. Raises as ``chaos.app.run.run``."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="nodefall-")))
        run_id = f"{loaded.experiment.metadata.name}-{seed:06x}"
        setup = plan_rehearsal(loaded, registry, connection, seed, run_id)
        entries: list[RecordingEntry] = []
        recorder = Recorder(decode, connection.ports.clock, entries.append if options.recording else None)
        journal = stack.enter_context(Journal(directory))
        result = execute(setup.context(journal, recorder, options.progress))
        if options.recording:
            write_recording(options.recording, entries)
        return JudgedRun(result, recorder.timeline())


def plan_rehearsal(
    loaded: LoadedExperiment, registry: PluginRegistry, connection: DirectConnection, seed: int, run_id: str
) -> RunSetup:
    """The plan, and all that its run needs. Raises NodefallError."""
    ports, numbers = connection.ports, count(1)
    ports.label_helpers(run_id)
    with refuse_before_side_effects(), TemporaryDirectory(prefix="nodefall-") as no_runs:  # the cluster is a new one
        planned, view = plan(loaded, ports, registry, seed, run_id, reports=Path(no_runs))

    def observe(
        cluster: ClusterConnection, _relevant: Collection[str], _note: Callable[[str], None]
    ) -> DirectObservers:
        return DirectObservers(connection.lab, cluster.clock)

    return RunSetup(
        loaded,
        registry,
        ports,
        planned,
        view,
        SoleHolder(lock_namespace(ports)),
        journal_signer(ports),
        before_fault=lambda: _settle(ports.clock),
        observe=observe,
        suffix=lambda: f"{next(numbers):016x}",
        judge=lambda live: SparseJudge(live, ports.clock),
    )


def _settle(clock: Clock) -> None:
    """Let the workload, which has only just become ready, settle before the fault."""
    clock.sleep(_SETTLE)


def refuse_outside_world(loaded: LoadedExperiment) -> None:
    """Raises Refused for what an experiment asks of the network."""
    spec = loaded.experiment.spec
    hint = "run the experiment on a lab instead"
    if spec.queries:
        raise Refused("queries: a rehearsal has no Prometheus", hint=hint)
    for probe in spec.probes:
        if not probe.service:
            raise Refused(f"probe {probe.name}: a rehearsal has no network but that of its Services", hint=hint)

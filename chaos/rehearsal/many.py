"""Many runs on copies of one cluster: of an experiment over seeds or victims, or of several experiments."""

from __future__ import annotations

import gc
import pickle
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import msgspec

from chaos.core.errors import Exit, NodefallError, Refused, UsageError
from chaos.core.inventory import Inventory, Limits, ProtectedNodes
from chaos.core.recording import ActionPhase, ActionRecord
from chaos.core.result import REFUSED, RunResult
from chaos.core.target_spec import TargetSpec
from chaos.core.timeline import Timeline
from chaos.engine.load import LoadedExperiment
from chaos.engine.registry import load_facts
from chaos.lab.facade import DirectLab, Machine
from chaos.rehearsal.connection import connect_to
from chaos.rehearsal.copies import LabCopy, Source
from chaos.rehearsal.forecast.document import Suite, row_of, suite_of
from chaos.rehearsal.forecast.finders import findings_of
from chaos.rehearsal.forecast.sample import Case, Sample, outages, still_on
from chaos.rehearsal.processes import rare_collections, run_forked
from chaos.rehearsal.run import PERIOD, RehearsalOptions, refuse_outside_world, rehearse_on
from chaos.verdicts.outcome.outcome import fault_time, outcome_of

_ALL = Limits.model_validate({"maxNodes": 1_000_000, "minReadyNodes": 0, "budgets": "ignore"})
_PHASE = 20.0  # seconds; the longest period of a controller that matters, pod garbage collection
ReportSample = Callable[[Sample], None]
_VERDICT = "nodefall.dev/verdict"
_DEFAULT_VERDICT = "held"


@dataclass(frozen=True, slots=True)
class Rehearsals:
    """What is run. ``settings``: the inventory whose limits and protected nodes apply; without one, all is allowed.

    ``jobs``: processes at a time. ``report`` is called with each sample as it ends. ``until``: the step at whose begin
    outages and losses end to count, "" for none. ``period``: seconds between two judgements.
    """

    loaded: LoadedExperiment
    source: Source
    jobs: int
    settings: Inventory | None = None
    report: ReportSample = lambda _: None
    until: str = ""
    period: float = PERIOD

    def over_seeds(self, seeds: Sequence[int], targets: Mapping[str, Sequence[str]] | None = None) -> list[Sample]:
        """One run for each seed, in their order; ``targets``: nodes instead of those that each seed selects.

        Raises NodefallError for what no run can do.
        """
        refuse_outside_world(self.loaded)
        work = partial(self._run_seed, with_targets(self.loaded, targets or {}))
        return self._collect(run_forked(seeds, work, self.jobs), len(seeds))

    def over_victims(self, victims: Mapping[str, tuple[str, ...]], seed: int) -> list[Sample]:
        """One run for each victim, nodes by name, in their order, all on one lab that has started once."""
        target = victim_target(self.loaded)
        cases = [(with_targets(self.loaded, {target: nodes}), name) for name, nodes in victims.items()]
        return self.on_one_lab(cases, seed)

    def on_one_lab(self, cases: Sequence[tuple[LoadedExperiment, str]], seed: int) -> list[Sample]:
        """One run for each experiment, with the name of its victim, all on copies of one lab that has started once."""
        refuse_outside_world(self.loaded)
        with rare_collections():
            copy = self.source.make()
            lab = _started(copy, seed)
            gc.collect()
            gc.freeze()  # what all processes share stays shared
            try:
                work = partial(self._run_case, lab, copy, seed)
                return self._collect(run_forked(cases, work, self.jobs), len(cases))
            finally:
                gc.unfreeze()

    def run_seed(self, seed: int) -> bytes:
        """The pickled sample of one run, which may be a refusal."""
        try:
            refuse_outside_world(self.loaded)
        except Refused as error:
            return pickle.dumps(_refusal(seed, "", error, ()))
        return self._run_seed(self.loaded, seed)

    def _collect(self, results: Generator[tuple[int, bytes], None, None], count: int) -> list[Sample]:
        samples: list[Sample | None] = [None] * count
        with closing(results):
            for index, text in results:
                samples[index] = sample = pickle.loads(text)  # noqa: S301 - of our own process
                self.report(sample)
        return [sample for sample in samples if sample is not None]

    def _run_seed(self, loaded: LoadedExperiment, seed: int) -> bytes:
        with rare_collections():
            copy = self.source.make()
            try:
                lab = _started(copy, seed)
            except NodefallError as error:
                return pickle.dumps(_refusal(seed, "", error, ()))
            return pickle.dumps(self._run(lab, copy, loaded, seed, ""))

    def _run_case(self, lab: DirectLab, copy: LabCopy, seed: int, case: tuple[LoadedExperiment, str]) -> bytes:
        loaded, victim = case
        return pickle.dumps(self._run(lab, copy, loaded, seed, victim))

    def _run(self, lab: DirectLab, copy: LabCopy, loaded: LoadedExperiment, seed: int, victim: str) -> Sample:
        options = RehearsalOptions(self.settings or without_limits(), period=self.period)
        left_out = tuple(copy.not_modelled())
        try:
            with connect_to(lab, options.settings) as connection:
                downtime = Downtime(lab)
                done = rehearse_on(connection, loaded, seed, options)
        except NodefallError as error:
            if error.code not in (Exit.REFUSED, Exit.INCONCLUSIVE):
                raise
            return _refusal(seed, victim, error, left_out)
        fault = fault_time(done.timeline)
        if fault is None:
            return Sample(seed, victim, done.result, not_modelled=left_out, refused=_why_no_fault(done.result))
        case = Case(done.timeline, fault, downtime.windows(), _begin_of(self.until, done.timeline))
        outcome, found = outcome_of(done.timeline, fault), (findings_of(case), tuple(outages(case)))
        unevicted = still_on(case, chain.from_iterable(done.result.targets.values())) if self.until else ()
        return Sample(seed, victim, done.result, *found, left_out, "", outcome, unevicted)


def _started(copy: LabCopy, seed: int) -> DirectLab:
    """A lab of the copy, in which a seeded time has passed, so that periodic work is at another point in each."""
    lab = DirectLab(msgspec.structs.replace(copy.spec, seed=seed))
    copy.start(lab)
    lab.sim.run_until(lab.sim.now + random.Random(seed).uniform(0.0, _PHASE))  # noqa: S311 - repeatable on purpose
    return lab


def _begin_of(step: str, timeline: Timeline) -> float | None:
    """When the step began, or was undone before; None if neither has happened."""
    if not step:
        return None
    return min((entry.t for entry, record in timeline.actions if _ends(step, record)), default=None)


def _ends(step: str, record: ActionRecord) -> bool:
    return record.phase == ActionPhase.UNDO or (record.step == step and record.phase == ActionPhase.BEGIN)


def _refusal(seed: int, victim: str, error: NodefallError, left_out: tuple[str, ...]) -> Sample:
    text = f"{error.message} ({error.hint})" if error.hint else error.message
    return Sample(seed, victim, None, not_modelled=left_out, refused=text)


def _why_no_fault(result: RunResult) -> str:
    return result.headline.removeprefix(REFUSED) or f"no step was sent, and the run is {result.ending}"


def without_limits(protected: ProtectedNodes | None = None) -> Inventory:
    """Settings under which any number of nodes may be victims: nothing is hurt. By default not the control planes."""
    document = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "rehearsal"}}
    cluster = {"cluster": {"kubeconfig": "rehearsal", "simulated": True}}
    inventory = Inventory.model_validate({**document, **cluster})
    return inventory.model_copy(update={"limits": _ALL, "protected": protected or inventory.protected})


class Downtime:
    """Recorded from its making on."""

    def __init__(self, lab: DirectLab) -> None:
        self._lab = lab
        self._open: dict[str, float] = {}
        self._closed: dict[str, list[tuple[float, float]]] = {}
        for machine in lab.cluster.machines.values():
            machine.on_change.append(self._note)

    def windows(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """Begin and end of each time, in order, by node; one that lasts ends with the simulation."""
        now = self._lab.sim.now
        last = {name: [(begin, now)] for name, begin in self._open.items()}
        names = sorted({*self._closed, *last})
        return {name: (*self._closed.get(name, []), *last.get(name, [])) for name in names}

    def _note(self, machine: Machine) -> None:
        is_down = machine.state != "on" or not machine.is_reachable
        if is_down and machine.name not in self._open:
            self._open[machine.name] = self._lab.sim.now
        elif not is_down and machine.name in self._open:
            self._closed.setdefault(machine.name, []).append((self._open.pop(machine.name), self._lab.sim.now))


def victim_target(loaded: LoadedExperiment) -> str:
    """The target of the first step that has one. Raises UsageError for an experiment without targets."""
    spec = loaded.experiment.spec
    named = next((step.target for step in spec.method if step.target in spec.targets), None)
    if named is None:
        raise UsageError(
            f"{loaded.experiment.metadata.name}: none of its steps has a target, so no node is its victim",
            hint="leave out --each-node and --each-zone",
        )
    return str(named)


def with_targets(loaded: LoadedExperiment, nodes: Mapping[str, Sequence[str]]) -> LoadedExperiment:
    """A copy whose targets are exactly these nodes; the others stay. Raises UsageError for an unknown one.

    A target that is to run the workload still is: that confines the pods of the workload to a few nodes.
    """
    spec = loaded.experiment.spec
    if unknown := sorted(nodes.keys() - spec.targets.keys()):
        raise UsageError(f"{loaded.experiment.metadata.name}: it has no target {unknown[0]!r}")
    chosen = {target: TargetSpec(nodes=list(names), runs=spec.targets[target].runs) for target, names in nodes.items()}
    targets = {**spec.targets, **chosen}
    experiment = loaded.experiment.model_copy(update={"spec": spec.model_copy(update={"targets": targets})})
    return replace(loaded, experiment=experiment)


@dataclass(frozen=True, slots=True)
class Part:
    """One experiment. ``lab``: the name of what it runs on."""

    rehearsals: Rehearsals
    lab: str

    @property
    def expected(self) -> str:
        """How a run of it ends, by its annotation; held without one."""
        annotations = self.rehearsals.loaded.experiment.metadata.annotations
        return annotations.get(_VERDICT, _DEFAULT_VERDICT)


def rehearse_suite(parts: Sequence[Part], seeds: Sequence[int], jobs: int, report: ReportSample) -> Suite:
    """Run each experiment with each seed, at most ``jobs`` at once. ``report`` is called with each run when it ends."""
    load_facts()  # imported once, and not in each process
    tasks = [(index, seed) for index in range(len(parts)) for seed in seeds]

    def work(task: tuple[int, int]) -> bytes:
        index, seed = task
        return parts[index].rehearsals.run_seed(seed)

    samples: dict[tuple[int, int], Sample] = {}
    with closing(run_forked(tasks, work, jobs)) as results:
        for number, text in results:
            samples[tasks[number]] = sample = pickle.loads(text)  # noqa: S301 - of our own process
            report(sample)
    rows = []
    for index, part in enumerate(parts):
        loaded = part.rehearsals.loaded
        name, ended = loaded.experiment.metadata.name, [samples[index, seed] for seed in seeds]
        rows.append(row_of(str(loaded.path), name, part.lab, part.expected, ended))
    return suite_of(rows, seeds)

"""``nodefall suggest``: weaknesses of a snapshot, rehearsals of its nodes and zones, and what they show together."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from chaos.cluster.snapshot.document import Contents
from chaos.core.errors import NodefallError
from chaos.core.text import count_of
from chaos.engine.load import LoadedExperiment, load
from chaos.rehearsal.copies import Source, parse_changes, snapshot_source
from chaos.rehearsal.forecast.sample import Sample, limits_of
from chaos.rehearsal.many import Rehearsals, ReportSample
from chaos.rehearsal.processes import run_forked
from chaos.rehearsal.suggest.document import Group, Suggestion
from chaos.rehearsal.suggest.events import BACK, Event, Victim, rehearsed
from chaos.rehearsal.suggest.experiments import experiments_of
from chaos.rehearsal.suggest.findings import weaknesses_of
from chaos.rehearsal.suggest.groups import node_victims, victim_called, zone_victims
from chaos.rehearsal.suggest.losses import Rehearsed, losses_of
from chaos.rehearsal.suggest.model import Model
from chaos.rehearsal.suggest.risks import UNREHEARSED, Risk, check, headline, risks_of, with_change
from chaos.rehearsal.suggest.weakness import Weakness

_WITH_CHANGES = 5  # risks whose remedy is rehearsed
_JUDGED = 60.0  # seconds between two judgements, which take half of the time: these rehearsals expect nothing
_ALWAYS = (
    "control-plane nodes: they are not victims, and the API server never fails",
    "several nodes that fail at once, except for a whole zone",
)


@dataclass(frozen=True, slots=True)
class SuggestOptions:
    """``snapshot``: of the cluster, and its ``contents``. ``top``: risks with experiments, rehearsed ``seeds`` times.

    ``namespace``: whose workloads are looked at, "" for all. ``jobs``: processes at a time. ``start`` is called with
    the number of runs that follow, ``report`` after each.
    """

    snapshot: Path
    contents: Contents
    top: int
    seeds: int
    namespace: str
    jobs: int
    start: Callable[[int], None] = lambda _: None
    report: ReportSample = lambda _: None


def suggest(options: SuggestOptions) -> Suggestion:
    """Find what is fragile, rehearse it, and rank it. Raises BadInput, UsageError, NodefallError."""
    source = snapshot_source(options.snapshot)
    model = Model(options.contents, options.namespace)
    weaknesses = weaknesses_of(model)
    nodes, left = node_victims(model)
    zones = zone_victims(model)
    study = _Study(source, options)
    study.rehearse([(event, victim) for event in Event for victim in (*nodes, *zones)], [1])
    screened = risks_of(model, study.found, weaknesses)
    study.rehearse(_decisive(screened[: options.top], study.found), range(2, options.seeds + 1))
    risks = risks_of(model, study.found, weaknesses)
    shown = _with_changes(risks, model, options)
    checked = check(weaknesses, shown)
    return Suggestion(
        snapshot=source.name,
        snapshot_hash=source.digest,
        kubernetes=source.kubernetes,
        namespace=options.namespace,
        seeds=tuple(range(1, options.seeds + 1)),
        headline=headline(shown, checked),
        risks=shown,
        weaknesses=checked,
        groups=tuple(Group(each.name, each.stands_for) for each in nodes),
        zones=tuple(each.name for each in zones),
        runs=sum(map(len, study.found.samples.values())),
        experiments=tuple(experiments_of(shown[: options.top], model)),
        limits=tuple(_limits(source, study.found, left, weaknesses)),
    )


class _Study:
    """Rehearses events on victims: all of a seed on copies of one lab."""

    def __init__(self, source: Source, options: SuggestOptions) -> None:
        self._source, self._options, self.found = source, options, Rehearsed()

    def rehearse(self, cases: Sequence[tuple[Event, Victim]], seeds: Iterable[int]) -> None:
        """One run for each case and seed."""
        numbers = list(seeds)
        if not cases or not numbers:
            return
        self._options.start(len(cases) * len(numbers))
        with TemporaryDirectory(prefix="nodefall-") as folder:
            loaded = [(_load(event, victim, Path(folder)), victim.name) for event, victim in cases]
        jobs, report = self._options.jobs, self._options.report
        rehearsals = Rehearsals(loaded[0][0], self._source, jobs, report=report, until=BACK, period=_JUDGED)
        for seed in numbers:
            samples = rehearsals.on_one_lab(loaded, seed)
            for (event, victim), sample in zip(cases, samples, strict=True):
                self.found.add(event, victim, sample)


def _load(event: Event, victim: Victim, folder: Path) -> LoadedExperiment:
    """The experiment of an event; the file is no longer needed."""
    path = folder / f"{event}.json"
    path.write_bytes(msgspec.json.encode(rehearsed(event, victim.nodes)))
    loaded = load(path)
    return replace(loaded, text=loaded.document)


def _decisive(risks: Sequence[Risk], found: Rehearsed) -> list[tuple[Event, Victim]]:
    """The events and victims that the worst losses of these risks were measured with."""
    wanted = {(risk.worst.event, risk.worst.measured_on or risk.worst.victim) for risk in risks}
    return [(event, victim) for event, victim in found.samples if (event, victim.words) in wanted]


@dataclass(frozen=True, slots=True)
class _Remedy:
    """A rehearsal of a risk's worst event after a change of the snapshot."""

    risk: Risk
    victim: Victim
    source: Source
    rehearsals: Rehearsals


def _with_changes(risks: Sequence[Risk], model: Model, options: SuggestOptions) -> tuple[Risk, ...]:
    """The first risks with a rehearsal of what would help, if that is a change of the snapshot; then the others."""
    remedies, shown = [], list(risks)
    with TemporaryDirectory(prefix="nodefall-") as folder:
        for index, risk in enumerate(risks[:_WITH_CHANGES]):
            if risk.change:
                try:
                    remedies.append((index, _remedy(risk, model, options, Path(folder))))
                except NodefallError as error:
                    shown[index] = msgspec.structs.replace(risk, changed=f"{risk.change}: {error.message}")
    workloads = {each.key: each for each in model.workloads}
    for number, text in run_forked([each for _, each in remedies], _run_remedy, options.jobs):
        (index, remedy), rehearsed_ = remedies[number], Rehearsed()
        sample: Sample = pickle.loads(text)  # noqa: S301 - of our own process
        rehearsed_.add(remedy.risk.worst.event, remedy.victim, sample)
        losses = losses_of(workloads[remedy.risk.workload], model, rehearsed_)
        shown[index] = with_change(remedy.risk, remedy.source.changes[0], losses)
    return tuple(shown)


def _remedy(risk: Risk, model: Model, options: SuggestOptions, folder: Path) -> _Remedy:
    """Raises NodefallError for a change that the snapshot cannot have."""
    victim = victim_called(risk.worst.victim, model)
    source = snapshot_source(options.snapshot, parse_changes([risk.change]))
    loaded = _load(risk.worst.event, victim, folder)
    return _Remedy(risk, victim, source, Rehearsals(loaded, source, 1, until=BACK, period=_JUDGED))


def _run_remedy(remedy: _Remedy) -> bytes:
    return remedy.rehearsals.run_seed(1)


def _limits(source: Source, found: Rehearsed, left: Sequence[str], weaknesses: Sequence[Weakness]) -> list[str]:
    """What the answer does not cover, one line each."""
    samples: list[Sample] = [sample for each in found.samples.values() for sample in each]
    lines = [*(f"not rehearsed: {line}" for line in found.refusals()), *_ALWAYS]
    if left:
        more = f"{', '.join(left[:5])}{' ...' if left[5:] else ''}"
        lines.insert(0, f"{count_of(len(left), 'node')} that are like none that was rehearsed ({more})")
    kinds = dict.fromkeys(each.kind for each in weaknesses if each.kind in UNREHEARSED)
    lines += [f"weakness {kind}: it shows in {UNREHEARSED[kind]}, which are not rehearsed" for kind in kinds]
    return [*lines, *limits_of(source.missing, samples)]

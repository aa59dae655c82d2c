"""``nodefall suggest``: weaknesses of a snapshot, rehearsals of its nodes and zones, and what they show together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from chaos.core.errors import NodefallError
from chaos.core.text import count_of
from chaos.engine.load import LoadedExperiment, load
from chaos.rehearsal.copies import Source, parse_changes, read_contents, snapshot_source
from chaos.rehearsal.forecast.sample import Sample, limits_of
from chaos.rehearsal.many import Rehearsals, ReportSample
from chaos.rehearsal.suggest.document import Group, Suggestion
from chaos.rehearsal.suggest.events import BACK, Event, Victim, rehearsed
from chaos.rehearsal.suggest.experiments import experiments_of
from chaos.rehearsal.suggest.findings import weaknesses_of
from chaos.rehearsal.suggest.groups import node_victims, zone_victims
from chaos.rehearsal.suggest.losses import Rehearsed, losses_of
from chaos.rehearsal.suggest.model import Model
from chaos.rehearsal.suggest.risks import UNREHEARSED, Risk, check, headline, risks_of, with_change
from chaos.rehearsal.suggest.weakness import Weakness

_WITH_CHANGES = 5  # risks whose remedy is rehearsed
_ALWAYS = (
    "control-plane nodes: they are not victims, and the API server never fails",
    "several nodes that fail at once, but for a whole zone",
)


@dataclass(frozen=True, slots=True)
class SuggestOptions:
    """``snapshot``: of the cluster. ``top``: risks with experiments; the first ``seeds`` are rehearsed for these.

    ``namespace``: whose workloads are looked at, "" for all. ``jobs``: processes at a time. ``start`` is called with
    the number of runs that follow, ``report`` after each.
    """

    snapshot: Path
    top: int
    seeds: int
    namespace: str
    jobs: int
    start: Callable[[int], None] = lambda _: None
    report: ReportSample = lambda _: None


def suggest(options: SuggestOptions) -> Suggestion:
    """Find what is fragile, rehearse it, and rank it. Raises BadInput, UsageError, NodefallError."""
    source = snapshot_source(options.snapshot)
    model = Model(read_contents(options.snapshot), options.namespace)
    weaknesses = weaknesses_of(model)
    nodes, left = node_victims(model)
    zones = zone_victims(model)
    study = _Study(source, options)
    study.rehearse([(event, victim) for event in Event for victim in (*nodes, *zones)], [1])
    screened = risks_of(model, study.found, weaknesses)
    study.rehearse(_decisive(screened[: options.top], study.found), range(2, options.seeds + 1))
    risks = risks_of(model, study.found, weaknesses)
    shown = tuple(_with_change(risk, options) for risk in risks[:_WITH_CHANGES]) + tuple(risks[_WITH_CHANGES:])
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
        rehearsals = Rehearsals(loaded[0][0], self._source, self._options.jobs, report=self._options.report, until=BACK)
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
    """The events and victims that the losses of these risks were measured with."""
    wanted = {(loss.event, loss.measured_on or loss.victim) for risk in risks for loss in risk.losses if loss.is_one}
    return [(event, victim) for event, victim in found.samples if (event, victim.words) in wanted]


def _with_change(risk: Risk, options: SuggestOptions) -> Risk:
    """The risk with a rehearsal of what would help, if that is a change of the snapshot."""
    if not risk.change:
        return risk
    loss = risk.worst
    try:
        source = snapshot_source(options.snapshot, parse_changes([risk.change]))
        model = Model(read_contents(options.snapshot), options.namespace)
        workload = next(each for each in model.workloads if each.key == risk.workload)
        nodes = model.zones[loss.victim.removeprefix("zone ")] if loss.victim not in model.nodes else (loss.victim,)
        is_zone = loss.victim not in model.nodes
        victim = Victim(loss.victim.removeprefix("zone ") if is_zone else loss.victim, nodes, is_zone=is_zone)
        study = _Study(source, replace(options, start=lambda _: None, report=lambda _: None))
        study.rehearse([(loss.event, victim)], [1])
    except NodefallError as error:
        return msgspec.structs.replace(risk, changed=f"{risk.change} cannot be rehearsed: {error.message}")
    return with_change(risk, source.changes[0], losses_of(workload, model, study.found))


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

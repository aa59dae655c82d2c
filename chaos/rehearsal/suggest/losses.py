"""What a workload loses in rehearsals of one event: how long it has no serving pod, what waits, and what stays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from chaos.core.text import count_of
from chaos.rehearsal.forecast.rows import format_seconds
from chaos.rehearsal.forecast.sample import FindingKind, Sample
from chaos.rehearsal.suggest.events import Event, Victim
from chaos.rehearsal.suggest.groups import fragile_profiles
from chaos.rehearsal.suggest.model import Model, Workload
from chaos.verdicts.outcome.prediction import quantile

_LONG = 60.0  # seconds of waiting for room that count


class Loss(Struct, frozen=True):
    """One workload and one event, over ``runs`` rehearsals: seconds without a serving pod.

    ``victim``: ``worker-1`` or ``zone a``; ``measured_on``: the node that was rehearsed for it, if that is another one.
    ``lasting``: runs in which it had none until the victim was back, after ``observed`` seconds. ``waiting``: pods that
    found no room for ``waited`` seconds. ``unevicted``: runs in which a drain could not evict its pods.
    """

    event: Event
    victim: str
    measured_on: str
    runs: int
    mean: float
    low: float
    p50: float
    high: float
    lasting: int
    waiting: int
    waited: float
    unevicted: int
    observed: int

    @property
    def gravity(self) -> tuple[float, int, float]:
        """The greater, the worse."""
        return self.mean, self.unevicted, self.waited

    @property
    def seconds(self) -> float:
        """The mean; without end if it lasted to the end of every run, as rehearsals of a drain are the shorter ones."""
        return math.inf if self.lasting == self.runs else self.mean

    @property
    def is_one(self) -> bool:
        """Whether anything was lost."""
        return bool(self.mean or self.unevicted or self.waiting)

    @property
    def is_of_zone(self) -> bool:
        """Whether the victim is a zone."""
        return self.victim.startswith("zone ")  # a node's name has no space

    @property
    def length(self) -> str:
        """``5m45s (5m40s to 5m50s)``."""
        shown, low, high = map(format_seconds, (self.p50, self.low, self.high))
        return f"{shown} ({low} to {high})" if low != high else shown

    @property
    def what(self) -> str:
        """In a few words, for people."""
        parts = []
        if self.lasting:
            parts.append(f"no serving pod until {self.victim} is back ({self.length} observed)")
        elif self.mean:
            parts.append(f"no serving pod for {self.length}")
        if self.waiting:
            parts.append(f"{count_of(self.waiting, 'pod')} without room for {format_seconds(self.waited)}")
        if self.unevicted:
            parts.append("its pods cannot be evicted, so the drain does not complete")
        return ", ".join(parts) or "nothing is lost"


@dataclass
class Rehearsed:
    """The samples of each event on each victim, and why those without a fault had none."""

    samples: dict[tuple[Event, Victim], list[Sample]] = field(default_factory=dict)

    def add(self, event: Event, victim: Victim, sample: Sample) -> None:
        """A run that has ended."""
        self.samples.setdefault((event, victim), []).append(sample)

    def refusals(self) -> Iterator[str]:
        """What could not be rehearsed, one line for each reason."""
        reasons: dict[str, list[str]] = {}
        for (event, victim), samples in self.samples.items():
            for sample in samples:
                if sample.refused:
                    reasons.setdefault(sample.refused, []).append(f"{event} of {victim.words}")
        for reason, found in reasons.items():
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            yield f"{found[0]}{more}: {reason}"


def losses_of(workload: Workload, model: Model, rehearsed: Rehearsed) -> list[Loss]:
    """Losses of a workload with its nodes and zones, one for each event; of a node that was not rehearsed, inferred."""
    own = {
        (event, victim): loss
        for (event, victim), samples in rehearsed.samples.items()
        if any(node in victim.nodes for node in workload.on_nodes) and (loss := _loss(samples, workload, event, victim))
    }
    nodes = {node for _, victim in own if not victim.is_zone for node in victim.nodes}
    found = list(own.values())
    for node in workload.on_nodes.keys() - nodes:
        found += _inferred(workload, node, model, rehearsed)
    return found


def _inferred(workload: Workload, node: str, model: Model, rehearsed: Rehearsed) -> Iterator[Loss]:
    """Losses with a node that was not rehearsed: those of a workload that is as fragile on a node that was."""
    wanted = fragile_profiles(model, node).get(workload.key)
    by_key: Mapping[str, Workload] = {each.key: each for each in model.workloads}
    done: set[Event] = set()
    for (event, victim), samples in rehearsed.samples.items():
        if wanted is None or event in done or victim.is_zone:
            continue
        alike = (key for key, found in fragile_profiles(model, victim.nodes[0]).items() if found == wanted)
        other = next((by_key[key] for key in alike), None)
        if other and (loss := _loss(samples, other, event, victim, node)):
            done.add(event)
            yield loss


def _loss(
    samples: Sequence[Sample], workload: Workload, event: Event, victim: Victim, instead_of: str = ""
) -> Loss | None:
    """The loss in these rehearsals; None if the fault happened in none of them."""
    runs = [_of_run(sample, workload, event, victim) for sample in samples if not sample.refused]
    if not runs:
        return None
    seconds = sorted(gone for gone, *_ in runs)
    worst = max(runs, key=lambda run: (run[3], run[2]))
    return Loss(
        event,
        instead_of or victim.words,
        victim.words if instead_of else "",
        len(runs),
        round(sum(seconds) / len(seconds), 3),
        seconds[0],
        quantile(seconds, 0.5),
        seconds[-1],
        sum(lasts for _, lasts, *_ in runs),
        worst[2],
        worst[3],
        sum(unevicted for *_, unevicted in runs),
        event.seconds,
    )


def _of_run(sample: Sample, workload: Workload, event: Event, victim: Victim) -> tuple[float, bool, int, float, bool]:
    """Seconds without a serving pod, whether to the end, pods without room, for how long, and whether pods stayed.

    Pods that wait until a zone is back are no loss, as topology spread may make them wait and the others serve; nor are
    pods that are still in a zone after a drain of all its nodes at once, for which its timeout may be too short.
    """
    key, name = (workload.kind, workload.name), workload.name
    is_left = event is Event.DRAIN and not victim.is_zone and key in sample.unevicted
    gone, lasts = next(
        ((each.none, each.lasts) for each in sample.outages if (each.kind, each.name) == key), (0.0, False)
    )
    if workload.kind == "Pod" and any(
        each.kind is FindingKind.POD_LOST and each.subject == name for each in sample.findings
    ):
        gone, lasts = float(event.seconds), True
    waits = [
        (each.count, each.seconds or 0.0)
        for each in sample.findings
        if each.kind is FindingKind.NO_ROOM and each.subject == name and (each.seconds or 0.0) >= _LONG
        if not victim.is_zone
    ]
    pods, waited = max(waits, key=lambda wait: wait[1], default=(0, 0.0))
    return gone, lasts, pods, waited, is_left

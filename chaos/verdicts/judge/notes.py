"""Notes of a result: wrong clocks, changed addresses, and times without proof that a watch was fresh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise

from chaos.core.api_fact import PseudoFact
from chaos.core.assertion import WatchingAssertion
from chaos.core.experiment import Experiment
from chaos.core.time_bounds import ClockOffset
from chaos.core.timeline import Timeline
from chaos.verdicts.judge.clocks import recorded_offsets

MAX_OFFSET = 1.0  # seconds


def address_changes(timeline: Timeline, nodes: Iterable[str]) -> tuple[str, ...]:
    """One sentence for each change: ``worker-1 is now at 172.18.0.5 (was 172.18.0.3)``.

    The addresses are those that the power control of a container reported, else the internal ones of the Node object.
    """
    found = (text for node in nodes for text in _changes(node, _reported(timeline, node) or _posted(timeline, node)))
    return tuple(dict.fromkeys(found))


def _changes(node: str, found: Iterable[frozenset[str]]) -> Iterator[str]:
    for before, now in pairwise(addresses for addresses in found if addresses):
        if new := now - before:
            former = before - now
            yield f"{node} is now at {_join(new)}" + (f" (was {_join(former)})" if former else "")


def _reported(timeline: Timeline, node: str) -> list[frozenset[str]]:
    readings = timeline.readings(node, PseudoFact.ADDRESSES)
    return [frozenset(map(str, r.value)) for r in readings if isinstance(r.value, list)]


def _posted(timeline: Timeline, node: str) -> list[frozenset[str]]:
    history = timeline.nodes.get(node, ())
    statuses = (version.object.status for version in history if not version.is_deleted)
    return [
        frozenset(each.address for each in (status.addresses if status else None) or () if each.type == "InternalIP")
        for status in statuses
    ]


def _join(addresses: Iterable[str]) -> str:
    return " and ".join(sorted(addresses))


def clock_notes(timeline: Timeline) -> list[str]:
    """One sentence for each clock whose offset certainly exceeds ``MAX_OFFSET``."""
    notes = [
        f"the clock of {source} is {_describe_offset(offset)} the clock of this run (± {offset.within:.1f} s)"
        for source, offset in sorted(recorded_offsets(timeline).items())
        if abs(offset.seconds) - offset.within > MAX_OFFSET
    ]
    measured = set(recorded_offsets(timeline))
    for name, ahead in sorted(timeline.currency.seconds_ahead.items()):
        if ahead > MAX_OFFSET and f"host {name}" not in measured:
            notes.append(
                f"the clock of node {name} is at least {ahead:.1f} s ahead of the clock of this run, by its Lease"
            )
    return [f"{note}: its timestamps are off by as much" for note in notes]


def _describe_offset(offset: ClockOffset) -> str:
    return f"{abs(offset.seconds):.1f} s {'ahead of' if offset.seconds > 0 else 'behind'}"


def relevant_resources(experiment: Experiment) -> frozenset[str]:
    """The resources that the assertions of an experiment ask about; Nodes and Pods also prove steps."""
    assertions = [each.bound.assertion for each in experiment.spec.expectations if each.bound]
    found = (each.sources for each in assertions if isinstance(each, WatchingAssertion))
    return frozenset({"nodes", "pods"}.union(*found))


def currency_notes(experiment: Experiment, timeline: Timeline) -> Iterator[str]:
    """A note for each resource: ``no proof that pods were fresh from 12:01:10 to 12:01:40 UTC``."""
    for source in sorted(relevant_resources(experiment)):
        windows = [(max(t, timeline.start), end) for t, end in timeline.currency.unproven(source, timeline.end)]
        if windows:
            spans = " and ".join(f"from {_clock_time(start)} to {_clock_time(end)}" for start, end in windows)
            yield f"no proof that {source} were fresh {spans} UTC: the times of their changes are uncertain"


def _clock_time(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%S")

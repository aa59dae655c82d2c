"""Clocks that differ from the run's: times that their owners write are not to be compared with others."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from chaos.judge.signals import source_time
from chaos.model.clock_offset import CLOCK_OFFSETS, ClockOffset
from chaos.model.kube import Lease
from chaos.model.timeline import History, Timeline

MAX_OFFSET = 1.0  # seconds
_WINDOW = 5  # renewals in a row: the quickest to arrive tells the clock best


def clock_notes(timeline: Timeline) -> list[str]:
    """One sentence for each clock that is off by more than ``BOUND``, as far as that is sure."""
    notes = [
        f"the clock of {source} is {_describe_offset(offset)} that of this run (give or take {offset.within:.1f}s)"
        for source, offset in sorted(_recorded_offsets(timeline).items())
        if abs(offset.seconds) - offset.within > MAX_OFFSET
    ]
    told = set(_recorded_offsets(timeline))
    for name, history in sorted(timeline.leases.items()):
        offset = lease_offset(history)
        if offset is not None and abs(offset.seconds) > MAX_OFFSET and f"host {name}" not in told:
            notes.append(f"the clock of node {name} is {_describe_offset(offset)} that of this run, by its Lease")
    return [f"{note}: times that it wrote are off by so much" for note in notes]


def lease_offset(history: History[Lease]) -> ClockOffset | None:
    """How far a node's clock is ahead, where it is farthest; None with too few renewals that were watched."""
    ahead = list(_offsets(history))
    windows = [max(ahead[i : i + _WINDOW]) for i in range(len(ahead) - _WINDOW + 1)]
    return ClockOffset(max(windows, key=abs), 0.0) if windows else None


def _offsets(history: History[Lease]) -> Iterator[float]:
    """Of each renewal, the node's time less ours when we saw it; what was listed was not seen when it happened."""
    last = ""
    for index, version in enumerate(history):
        renewed = (version.object.spec.renew_time if version.object.spec else None) or ""
        at = source_time(renewed)
        if index and at is not None and renewed != last and not version.final_state_unknown:
            yield at - version.t
        last = renewed


def _recorded_offsets(timeline: Timeline) -> dict[str, ClockOffset]:
    try:
        return msgspec.convert(timeline.meta.get(CLOCK_OFFSETS, {}), dict[str, ClockOffset])
    except msgspec.ValidationError:  # another recorder's
        return {}


def _describe_offset(offset: ClockOffset) -> str:
    return f"{abs(offset.seconds):.1f}s {'ahead of' if offset.seconds > 0 else 'behind'}"

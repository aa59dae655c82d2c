"""Clock offsets: the times that a skewed node writes are not comparable with others."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from chaos.judge.signals import source_time
from chaos.model.clock_offset import CLOCK_OFFSETS, ClockOffset
from chaos.model.kube import Lease
from chaos.model.timeline import History, Timeline

MAX_OFFSET = 1.0  # seconds
_WINDOW = 5  # successive renewals; the one with the least delay gives the best estimate


def clock_notes(timeline: Timeline) -> list[str]:
    """One sentence for each clock whose offset certainly exceeds ``MAX_OFFSET``."""
    notes = [
        f"the clock of {source} is {_describe_offset(offset)} the clock of this run (± {offset.within:.1f} s)"
        for source, offset in sorted(_recorded_offsets(timeline).items())
        if abs(offset.seconds) - offset.within > MAX_OFFSET
    ]
    measured = set(_recorded_offsets(timeline))
    for name, history in sorted(timeline.leases.items()):
        offset = lease_offset(history)
        if offset is not None and abs(offset.seconds) > MAX_OFFSET and f"host {name}" not in measured:
            notes.append(
                f"the clock of node {name} is {_describe_offset(offset)} the clock of this run, according to its Lease"
            )
    return [f"{note}: its timestamps are off by as much" for note in notes]


def lease_offset(history: History[Lease]) -> ClockOffset | None:
    """Largest offset of a node's clock, positive if ahead; None with too few watched renewals."""
    offsets = list(_offsets(history))
    windows = [max(offsets[i : i + _WINDOW]) for i in range(len(offsets) - _WINDOW + 1)]
    return ClockOffset(max(windows, key=abs), 0.0) if windows else None


def _offsets(history: History[Lease]) -> Iterator[float]:
    """Renewal time minus receipt time of each watched renewal; a listed one was not received when it happened."""
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
    except msgspec.ValidationError:  # the format of another recorder
        return {}


def _describe_offset(offset: ClockOffset) -> str:
    return f"{abs(offset.seconds):.1f} s {'ahead of' if offset.seconds > 0 else 'behind'}"

"""Clock offsets: the times that a skewed node writes are not comparable with others."""

from __future__ import annotations

import msgspec

from chaos.core.clock_offset import CLOCK_OFFSETS, ClockOffset
from chaos.core.timeline import Timeline

MAX_OFFSET = 1.0  # seconds


def clock_notes(timeline: Timeline) -> list[str]:
    """One sentence for each clock whose offset certainly exceeds ``MAX_OFFSET``."""
    notes = [
        f"the clock of {source} is {_describe_offset(offset)} the clock of this run (± {offset.within:.1f} s)"
        for source, offset in sorted(_recorded_offsets(timeline).items())
        if abs(offset.seconds) - offset.within > MAX_OFFSET
    ]
    measured = set(_recorded_offsets(timeline))
    for name, ahead in sorted(timeline.currency.seconds_ahead.items()):
        if ahead > MAX_OFFSET and f"host {name}" not in measured:
            notes.append(
                f"the clock of node {name} is at least {ahead:.1f} s ahead of the clock of this run, by its Lease"
            )
    return [f"{note}: its timestamps are off by as much" for note in notes]


def _recorded_offsets(timeline: Timeline) -> dict[str, ClockOffset]:
    try:
        return msgspec.convert(timeline.meta.get(CLOCK_OFFSETS, {}), dict[str, ClockOffset])
    except msgspec.ValidationError:  # the format of another recorder
        return {}


def _describe_offset(offset: ClockOffset) -> str:
    return f"{abs(offset.seconds):.1f} s {'ahead of' if offset.seconds > 0 else 'behind'}"

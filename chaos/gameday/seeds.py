"""Seeds of the runs of a day: each repetition has one, which a resumed day keeps."""

from __future__ import annotations

import hashlib

from chaos.gameday.document import MAX_SEED, GameDayEntry


def entry_seeds(entry: GameDayEntry, name: str, base: int) -> tuple[int, ...]:
    """One per repetition: from the entry's own seed, else from ``base``, the seed of the day, and the name."""
    if entry.seed is not None:
        return tuple((entry.seed + number) % (MAX_SEED + 1) for number in range(entry.repeat))
    return tuple(_derived(f"{base}/{name}/{number}") for number in range(entry.repeat))


def _derived(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])

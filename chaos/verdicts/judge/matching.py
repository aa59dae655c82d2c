"""Who matches at a moment, of a set that changes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from chaos.core.signal import Sample, SubjectSet
from chaos.verdicts.judge.quantifiers import decide

UNSEEN, OTHERS = -2, -1  # keys of pods that no one has seen, and of those that have no change of their own
_Since = tuple[str, Sample]  # name, and the change since when it is so


@dataclass(slots=True)
class Matching:
    """Those that match, and those of which it is unknown, by key, in the order in which it became so.

    ``is_behind``: changes may not be received yet.
    """

    true: dict[int, _Since]
    unknown: dict[int, _Since]
    is_behind: bool = False

    def copy(self) -> Matching:
        return Matching(self.true.copy(), self.unknown.copy(), self.is_behind)

    def value(self, key: int) -> bool | None:
        return True if key in self.true else None if key in self.unknown else False

    def update(self, key: int, name: str, sample: Sample) -> None:
        """Apply a change."""
        if sample.value is not True:
            self.true.pop(key, None)
        if sample.value is not None:
            self.unknown.pop(key, None)
        if sample.value is not False:
            (self.true if sample.value else self.unknown).setdefault(key, (name, sample))
        self.is_behind = self.is_behind or sample.is_lag

    def lose_others(self, own: Container[int]) -> None:
        """All but the keys ``own`` are no longer known: as then those that no one has seen are not, they decide."""
        self.true = {key: since for key, since in self.true.items() if key in own}

    def sample(self, change: Sample, seq: int | None, wanted: SubjectSet, unseen: int) -> Sample:
        """Whether the number is in the range after ``change``. ``seq``: of the change; ``unseen``: how many are."""
        number, unknown = len(self.true), len(self.unknown) + (unseen - 1) * (UNSEEN in self.unknown)
        value = decide(wanted, number, 0, unknown)
        name, since = next(iter((self.unknown if value is None else self.true).values()), ("", None))
        text = f"{number} {'pod matches' if number == 1 else 'pods match'}"
        if since is not None:
            example = f"{name}: {since.observation}" if name else since.observation
            text += f", perhaps more: {example}" if value is None else f" (for example {example})"
            seq = seq if since.seq is None else since.seq
        is_lag = value is None and self.is_behind
        if change.lo < change.t:
            return Sample(change.t, value, seq, text, change.earliest, change.order, is_lag)
        return Sample(change.t, value, seq, text, is_lag=is_lag)  # of all that changed at this moment

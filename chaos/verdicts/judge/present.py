"""Which objects exist at a moment: found again only for those that have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice, zip_longest
from typing import Any, Generic, Protocol, TypeVar

from chaos.core.history import History
from chaos.verdicts.judge.membership import is_member


class _Key(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


K = TypeVar("K", bound=_Key)


class Revisions:
    """Which of some histories, to which others may be appended, have changed since they were noted."""

    def __init__(self) -> None:
        self._noted: list[int] = []
        self._now: list[int] = []

    def changed(self, histories: Iterable[History[Any] | None]) -> list[int]:
        """Indexes of those that have changed, and of all that were not noted; what is None does not change."""
        self._now = [-1 if history is None else history.revision for history in histories]
        if self._now == self._noted:
            return []
        pairs = enumerate(zip_longest(self._now, self._noted, fillvalue=-2))
        return [index for index, (now, noted) in pairs if now != noted]

    def note(self) -> None:
        """Note what was found last."""
        self._noted = self._now


def at(moment: float) -> Callable[[History[Any]], Iterable[float]]:
    """One moment, for all objects."""
    return lambda _: (moment,)


class Present(Generic[K]):
    """The objects of a set that exist at one of the moments that decide."""

    def __init__(
        self,
        moments: Callable[[History[Any]], Iterable[float]],
        source: Callable[[K], str],
        includes: Callable[[K], bool] = lambda _: True,
    ) -> None:
        """``moments``: those that decide for an object.

        ``source``: the resource of the object with a key; ``includes``: whether it may belong to the set.
        """
        self._moments, self._source, self._includes = moments, source, includes
        self._read = 0  # number of histories
        self._candidates: list[K] = []
        self._revisions = Revisions()
        self._present: set[K] = set()
        self._keys: tuple[K, ...] = ()

    def keys(self, histories: Mapping[K, History[Any]]) -> tuple[K, ...]:
        """Their keys, in order; ``histories``: those of the call before, and new ones after. Raises Undecidable."""
        self._candidates += filter(self._includes, islice(histories, self._read, None))
        self._read = len(histories)
        changed = self._revisions.changed(map(histories.__getitem__, self._candidates))
        for key in (self._candidates[index] for index in changed):
            history, source = histories[key], self._source(key)
            exist = [is_member(history, t, source, lambda _: True) for t in self._moments(history)]
            (self._present.add if any(exist) else self._present.discard)(key)
        self._revisions.note()
        if len(changed) and self._present != {*self._keys}:
            self._keys = tuple(sorted(self._present))
        return self._keys

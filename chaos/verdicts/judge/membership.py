"""The objects that exist, or belong to a set, at a moment: some versions are received later than they happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice, zip_longest
from typing import Any, Generic, Protocol, TypeVar

from chaos.core.assertion import NotYetDecidable, Undecidable, View
from chaos.core.kube import full_name
from chaos.core.timeline import History, Version

Includes = Callable[[Version[Any]], bool]
_PROMPT = 0.5  # seconds before a moment at which an object that was received after it has hardly come or gone


def require_complete(view: View, source: str, moment: float, where: str = "the beginning") -> None:
    """Raise NotYetDecidable unless everything of the resource from before ``moment`` is proven to be received.

    For a view with a lookback, shortly before is enough, without objects that came and went.
    """
    log = view.timeline.currency
    if (log.listed_until(source) if view.lookback else log.until(source)) < moment - view.lookback:
        why = f"the {source} at {where} may not all have been received yet"
        raise NotYetDecidable(why, _remedy(source))


def membership(history: History[Any], moment: float, includes: Includes, prompt: float = 0.0) -> bool | None:
    """Whether the object exists at the moment and belongs to the set; None if versions on either side may be in force.

    What does not change the answer leaves it certain, however late it was received. ``prompt``: seconds before the
    moment from when on what was received after it counts as after it.
    """
    version = history.at(moment)
    found = {version is not None and not version.is_deleted and includes(version)}
    for late in history.after(moment):
        member = not late.is_deleted and includes(late)
        if late.latest <= moment:
            found = {member}
        elif late.earliest < moment - prompt:
            found.add(member)
        else:
            break
    return found.pop() if len(found) == 1 else None


def exists(history: History[Any], moment: float, source: str) -> bool:
    """Whether the object exists at the moment. Raises Undecidable if it may have come or gone then."""
    found = membership(history, moment, lambda _: True, _PROMPT)
    if found is None:
        name = full_name(history.last.object.metadata)
        raise Undecidable(f"the {source} at the beginning are unknown: {name} may have come or gone", _remedy(source))
    return found


def may_be_gone(history: History[Any], moment: float) -> bool:
    """Whether a deletion that was received later may have happened before the moment."""
    return any(late.is_deleted and late.earliest < moment for late in history.after(moment))


def _remedy(source: str) -> str:
    return f"a watch of the {source} that is proven current at that moment"


class _Key(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


K = TypeVar("K", bound=_Key)


class Revisions:
    """Tracks which histories have changed since they were noted. Histories can be appended."""

    def __init__(self) -> None:
        self._noted: list[int] = []
        self._now: list[int] = []

    def changed(self, histories: Iterable[History[Any] | None]) -> list[int]:
        """The indexes of histories that have changed or were not noted yet. None never changes."""
        self._now = [-1 if history is None else history.revision for history in histories]
        if self._now == self._noted:
            return []
        pairs = enumerate(zip_longest(self._now, self._noted, fillvalue=-2))
        return [index for index, (now, noted) in pairs if now != noted]

    def note(self) -> None:
        """Note the current revisions."""
        self._noted = self._now


def at(moment: float) -> Callable[[History[Any]], Iterable[float]]:
    """The state of all objects at one moment."""
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
        """The objects' keys, in order; ``histories``: of the previous call, then new ones. Raises Undecidable."""
        self._candidates += filter(self._includes, islice(histories, self._read, None))
        self._read = len(histories)
        changed = self._revisions.changed(map(histories.__getitem__, self._candidates))
        for key in (self._candidates[index] for index in changed):
            history, source = histories[key], self._source(key)
            exist = [exists(history, t, source) for t in self._moments(history)]
            (self._present.add if any(exist) else self._present.discard)(key)
        self._revisions.note()
        if len(changed) and self._present != {*self._keys}:
            self._keys = tuple(sorted(self._present))
        return self._keys

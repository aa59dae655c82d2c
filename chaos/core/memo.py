"""What was made of single objects, for the next judgement of a run that is still being recorded."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from chaos.core.history import History
from chaos.core.recording import BlindWindow
from chaos.core.timeline import Timeline

T = TypeVar("T")


class Memo:
    """Values that were made of one object each, for one question.

    A value is made again once its object has changed (a new version, or a narrower interval of one), once a blind
    window was recorded, or if ``state`` differs. It may depend on nothing else that changes.
    """

    def __init__(self) -> None:
        self._made: dict[History[Any], tuple[int, list[BlindWindow], tuple[object, ...], Any]] = {}
        self._lasting: Any = None

    def recall(self, timeline: Timeline, history: History[Any], make: Callable[[], T], *state: object) -> T:
        """What ``make`` makes of the history, or has made of it."""
        revision, windows, former, value = self._made.get(history, _NOTHING)
        now, present = history.revision, timeline.blind_windows  # before: what comes meanwhile may not be in the value
        if revision != now or windows is not present or former != state:
            value = make()
            self._made[history] = (now, present, state, value)
        made: T = value
        return made

    def keep(self, make: Callable[[], T]) -> T:
        """What ``make`` has made once: something that finds out by itself what has changed."""
        if self._lasting is None:
            self._lasting = make()
        lasting: T = self._lasting
        return lasting


_NOTHING: tuple[int, list[BlindWindow], tuple[object, ...], Any] = (-1, [], (), None)


class Memos:
    """The memos of one run, by question. Those that a judgement did not use are forgotten after it."""

    def __init__(self) -> None:
        self._used: dict[Hashable, Memo] = {}
        self._former: dict[Hashable, Memo] = {}

    def begin_judgement(self) -> None:
        self._former, self._used = self._used, {}

    def of(self, question: Hashable) -> Memo:
        """The memo of a question, which has all that the values depend on, besides the timeline."""
        memo = self._used.get(question)
        if memo is None:
            memo = self._used[question] = self._former.get(question) or Memo()
        return memo

"""What the live page shows: taken from the run's threads without delay, put together in the server's thread."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from chaos.core.ports import JudgementDisplay, Progress
from chaos.core.result import RESULT_VERSION, Judgement, RunResult
from chaos.core.text import on_node, printable
from chaos.core.timeline import Entry
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.page.live_page import LivePage
from chaos.reports.run.page.page_data import pack_text

RETAINED = 30  # messages that a client may be behind before it gets everything again
_BIG = 256_000  # characters; a greater change is sent as everything, which is compressed

Event = tuple[str, str]  # name and data of a server-sent event


class LiveFeed:
    """Implements ``chaos.core.ports.RunWatcher``; :meth:`progress` passes the progress on, too.

    The methods of the watcher may be called from any thread and only append to a queue. All others are for the thread
    of the server, whose end is :meth:`close`.
    """

    def __init__(self, experiment: str, cluster: str) -> None:
        self.version = 0
        self._page = LivePage()
        self._news: deque[tuple[Callable[[Any], None], Any]] = deque()
        self._state = {"experiment": printable(experiment), "cluster": printable(cluster)}
        self._state |= {"phase": "starting", "note": "", "stop": ""}
        self._stop: Callable[[], None] | None = None
        self._targets: dict[str, tuple[str, ...]] = {}
        self._result: RunResult | None = None
        self._now = 0.0
        self._shown: RunResult | None = None  # the result of the last message
        self._messages: deque[tuple[int, str]] = deque(maxlen=RETAINED)  # by version; "" for one that is too big
        self._whole = ""
        self._has_news = self._is_closed = False

    # For the threads of the run.

    def begin(self, targets: Mapping[str, tuple[str, ...]], stop: Callable[[], None] | None) -> None:
        self._add(self._begin, (dict(targets), stop))

    def entry(self, entry: Entry) -> None:
        self._add(self._page.add, entry)

    def steady(self, verdicts: tuple[Verdict, ...]) -> None:
        self._add(self._steady, verdicts)

    def judged(self, result: RunResult) -> None:
        self._add(self._judged, result)

    def describe(self, **state: str) -> None:
        """Change what the page says about the run: ``phase``, ``note``, ``experiment``, ``cluster``."""
        self._add(self._state.update, {name: printable(value) for name, value in state.items()})

    def tick(self, now: float) -> None:
        """``now``: epoch seconds by the run's clock."""
        self._add(self._tick, now)

    def progress(self, progress: Progress) -> Progress:
        """Progress that is shown on the page, too."""
        return _FedProgress(progress, self)

    def _add(self, action: Callable[[Any], None], value: Any) -> None:
        if not self._is_closed:
            self._news.append((action, value))

    # For the thread of the server.

    def close(self) -> None:
        """Forget all news, and take no more: without a server, a run would only fill the memory with them."""
        self._is_closed = True
        self._news.clear()

    def take(self, seconds: float) -> bool:
        """Take what has arrived, for at most ``seconds`` of CPU time; whether there is more."""
        end = time.thread_time() + seconds
        while self._news:
            action, value = self._news.popleft()
            action(value)
            self._has_news = True
            if time.thread_time() > end:
                return bool(self._news)
        return False

    def publish(self) -> bool:
        """Make the next message, if anything has been taken since the last one; whether there is one."""
        if not self._has_news or not self._page.timeline.entries:
            return False
        self._has_news = False
        result = self._result or self._unjudged()
        text = self._page.update(result, self._now)
        is_whole = self._shown is None or len(text) > _BIG
        self._shown, self._whole = result, ""
        self.version += 1
        self._messages.append((self.version, "" if is_whole else text))
        return True

    def since(self, version: int) -> list[Event]:
        """The events for a client that has seen up to ``version``; everything, if it is too far behind."""
        if version == self.version:
            return []
        missed = [text for number, text in self._messages if number > version]
        if version > 0 and len(missed) == self.version - version and all(missed):
            return [("more", text) for text in missed]
        return [("whole", self.whole())]

    def whole(self) -> str:
        """Everything as of the last message, packed."""
        if not self._whole and self._shown is not None:
            self._whole = pack_text(self._page.whole(self._shown))
        return self._whole

    def state(self) -> str:
        """What the page says about the run, as JSON."""
        return json.dumps(self._state, sort_keys=True)

    def stop(self) -> bool:
        """Stop the run; whether that is possible now. Once is enough."""
        if self._stop is None:
            return False
        if self._state["stop"] == "ready":
            self._state["stop"] = "asked"
            self._stop()
        return True

    def _begin(self, begun: tuple[dict[str, tuple[str, ...]], Callable[[], None] | None]) -> None:
        self._targets, self._stop = begun
        self._state["stop"] = "ready" if self._stop else ""

    def _steady(self, verdicts: tuple[Verdict, ...]) -> None:
        if self._result is None or not self._result.steps:
            self._result = structs.replace(self._unjudged(), steady_state=verdicts)

    def _judged(self, result: RunResult) -> None:
        self._result = result
        self._tick(result.ended)

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)

    def _unjudged(self) -> RunResult:
        """The result of a run before its first judgement."""
        start = self._page.timeline.start
        name = self._state["experiment"]
        times, targets = (start, start), self._targets
        return RunResult(
            RESULT_VERSION, "", name, name, Status.PENDING, 0, "", False, "", "", *times, targets, (), (), ()
        )  # fmt: skip


class _FedProgress:
    """Implements ``chaos.core.ports.Progress`` and ``JudgementDisplay``."""

    def __init__(self, progress: Progress, feed: LiveFeed) -> None:
        self._progress, self._feed = progress, feed

    def phase(self, name: str) -> None:
        self._feed.describe(phase=name)
        self._progress.phase(name)

    def step(self, name: str, node: str, what: str) -> None:
        self._feed.describe(note=f"{on_node(f'step {name}', node)}: {what}")
        self._progress.step(name, node, what)

    def verdict(self, verdict: Verdict) -> None:
        self._progress.verdict(verdict)

    def note(self, text: str) -> None:
        self._feed.describe(note=text)
        self._progress.note(text)

    def tick(self, now: float) -> None:
        self._feed.tick(now)
        self._progress.tick(now)

    def judged(self, judgement: Judgement) -> None:
        if isinstance(self._progress, JudgementDisplay):
            self._progress.judged(judgement)

"""The state of the live view: what is reported, the cluster, and what the keys have changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos.cli.run.progress_state import Line, ProgressState
from chaos.cli.run.view.cluster_state import ClusterState

EVENTS = 1000  # lines that are kept to be printed at the end


@dataclass
class ViewState:
    """All that a frame shows.

    ``silent``: wall seconds since the run was last heard of, as while it waits for a host.
    """

    progress: ProgressState = field(default_factory=ProgressState)
    cluster: ClusterState = field(default_factory=ClusterState)
    events: deque[Line] = field(default_factory=lambda: deque(maxlen=EVENTS))
    has_keys: bool = False
    is_stopping: bool = False
    opens_report: bool = False
    silent: float = 0.0
    dropped: int = 0  # events that are no longer kept
    _frozen: tuple[Line, ...] | None = None  # the events when scrolling was paused
    _news: int = 0

    def add(self, lines: Sequence[Line]) -> None:
        self.dropped += max(0, len(self.events) + len(lines) - EVENTS)
        self.events.extend(lines)
        self._news += len(lines)

    def toggle_pause(self) -> None:
        """Let the events stand still, or go on with the last ones."""
        self._frozen = tuple(self.events) if self._frozen is None else None
        self._news = 0

    @property
    def is_paused(self) -> bool:
        return self._frozen is not None

    @property
    def news(self) -> int:
        """Events that came while scrolling was paused."""
        return self._news if self.is_paused else 0

    def last_events(self, count: int) -> list[Line]:
        """The last events that are shown, oldest first."""
        shown = self.events if self._frozen is None else self._frozen
        return list(shown)[-count:] if count > 0 else []

"""How the servers of a lab wait for simulated time, and what of theirs stops it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Waits(Protocol):
    """As Lockstep does them for clients in other processes, and SimWaits for one in this process."""

    def request(self) -> AbstractContextManager[None]:
        """Count a request in flight: time does not move."""

    def subrequest(self) -> AbstractContextManager[None]:
        """Count a concurrent part of the current request."""

    def suspend_request(self) -> AbstractContextManager[None]:
        """Let time move within a request that waits for its client."""

    def hold_for_new_tasks(self) -> None:
        """Stop time until the tasks created so far have run as far as they can."""

    async def wait_until(self, until: float, *, background: bool = False) -> None:
        """Wait for simulated time within a request; ``background``: no client waits for that request."""

    def on_sent(self) -> None:
        """Let clients receive a watch event before time moves."""


class Job(Protocol):
    """A program in the background."""

    def __await__(self) -> Generator[Any, Any, int]: ...

    def cancel(self) -> object: ...

    def add_done_callback(self, call: Callable[[Any], object], /) -> None: ...

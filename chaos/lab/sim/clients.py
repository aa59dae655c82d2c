"""The processes of a lab's clients that run on this machine: time waits while one of them has something to do."""

from __future__ import annotations

from collections import Counter

from chaos.lab.sim.client_process import MAX_WORK, ClientProcess, ProcessGoneError
from chaos.lab.sim.idle_loop import IdleLoop

Identity = tuple[int, int]  # process ID, and when it started


class Clients:
    """Processes that are observed; false if there are none. ``loop``: the lab's."""

    def __init__(self, loop: IdleLoop) -> None:
        self._loop = loop
        self._processes: dict[Identity, ClientProcess] = {}
        self._connections: Counter[Identity] = Counter()
        self._idle_at: dict[Identity, float] = {}  # processor time used when all were last found idle
        self._waiting_since: dict[Identity, float] | None = None  # processor time when time could have moved
        self._last_used: dict[Identity, float] = {}  # at the last inspection
        self._has_news = True

    def __bool__(self) -> bool:
        return bool(self._processes)

    def join(self, identity: Identity) -> None:
        """Observe the process of one more connection. Raises ProcessGoneError if that is not possible."""
        if identity not in self._processes:
            self._processes[identity] = ClientProcess(*identity)
        self._connections[identity] += 1

    def leave(self, identity: Identity) -> None:
        """One connection of the process less; the last one ends the observation."""
        self._connections[identity] -= 1
        if not self._connections[identity]:
            self._drop(identity)

    def observes(self, identity: Identity | None) -> bool:
        return identity in self._processes

    def notify(self) -> None:
        """The lab may have sent something without a request: clients that were idle may not be."""
        self._has_news = True

    def begin_wait(self) -> None:
        """Time cannot move anyway: what clients compute now is not counted as a delay of time."""
        self._waiting_since = None

    async def are_idle(self) -> bool:
        """Whether no client can do anything before time moves, and the lab has received all that they sent.

        Clients that make time wait for MAX_WORK processor seconds without a pause are waited for no longer.
        """
        before, self._last_used = self._last_used, self._used()
        used = self._last_used
        if used == self._idle_at and not self._has_news:
            return True
        if self._waiting_since is None:
            self._waiting_since = used
        if sum(used.values()) - sum(self._waiting_since.values()) > MAX_WORK:
            return True
        if used != before:  # cheaper than to inspect each thread
            return False
        await self._loop.until_idle()
        if self._used() != used or not all(map(self._is_asleep, used)) or self._used() != used:
            return False
        self._idle_at, self._has_news, self._waiting_since = used, False, None
        return True

    def _used(self) -> dict[Identity, float]:
        """Processor time used so far. A process that can no longer be observed is dropped."""
        used = {}
        for identity, process in list(self._processes.items()):
            try:
                used[identity] = process.cpu()
            except ProcessGoneError:
                self._drop(identity)
        return used

    def _is_asleep(self, identity: Identity) -> bool:
        try:
            return self._processes[identity].is_asleep()
        except (KeyError, ProcessGoneError):
            self._drop(identity)
            return False

    def _drop(self, identity: Identity) -> None:
        if process := self._processes.pop(identity, None):
            process.close()

"""The kubelet's one HTTP/2 connection to the API server: how it stalls, dies after 45 s, and comes back.

Refereed by recordings 07 and 12: 45.0 s of a gap in the Lease, then the other family; seconds after a heal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from chaos.lab.node.network import Family
from chaos.lab.sim.clock import Timer

if TYPE_CHECKING:
    from chaos.lab.node.kubelet.process import Process

_DEAD_AFTER = 45.0  # client-go: ReadIdleTimeout 30 s and PingTimeout 15 s after the last frame that came
_FALLBACK = 0.3  # net.Dialer: the other family is tried as well after so long (RFC 6555)
_HANDSHAKE = 0.004
_SYN = (0.0, 1.0, 3.0, 7.0)  # tcp(7): retransmissions double
_REDIAL = 10.0  # requests time out, and the next one dials anew
_RTO = 0.2  # tcp(7): the first retransmission of data on an established connection
_FLUSH_INTERVAL = (0.002, 0.012)  # from one held request to the next once the connection is back


class ApiServerLink:
    """Requests go through :meth:`send`; while the connection is gone they are held, the latest of each key."""

    def __init__(self, process: Process) -> None:
        self._process, self._network = process, process.machine.network
        self._queue: dict[Hashable, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._family: Family | None = None
        self._is_stalled = self._is_awaiting_ack = False
        self._last_read = self._unacknowledged_since = self._dial_start = process.sim.now
        self._timer: Timer | None = None
        self.on_up: list[Callable[[], None]] = []
        self._network.on_change.append(self._on_network_change)
        self._dial()

    @property
    def is_up(self) -> bool:
        """Whether a request is answered at once."""
        return self._family is not None and not self._is_stalled

    @property
    def family(self) -> Family | None:
        """Of the connection, None without one."""
        return self._family

    def send(self, key: Hashable, call: Callable[..., Any], *args: Any) -> None:
        """Do ``call``, a request, now or as soon as the API server can be reached; only the last of a key."""
        if self.is_up:
            self._last_read = self._process.sim.now
            call(*args)
            return
        if not self._is_awaiting_ack:
            self._is_awaiting_ack, self._unacknowledged_since = True, self._process.sim.now
        self._queue.pop(key, None)
        self._queue[key] = (call, args)

    def on_frame(self) -> None:
        """A frame came from the API server: the connection is alive."""
        self._last_read = self._process.sim.now

    def cancel(self, key: Hashable) -> bool:
        """Take back a request that is held; whether there was one."""
        return self._queue.pop(key, None) is not None

    def close(self) -> None:
        """The process is gone."""
        self._queue.clear()
        self._network.on_change.remove(self._on_network_change)

    def _on_network_change(self) -> None:
        if self._family is None:
            self._plan_dial()
        elif not self._network.can_connect(self._family):
            self._stall()
        elif self._is_stalled:
            self._retransmit()

    def _stall(self) -> None:
        if not self._is_stalled:
            self._is_stalled, self._is_awaiting_ack = True, False
            self._unacknowledged_since = self._last_read + _DEAD_AFTER  # the ping is the first, unless a request is
        self._set_timer(self._last_read + _DEAD_AFTER, self._drop_connection)

    def _retransmit(self) -> None:
        """Packets pass again: what was sent meanwhile goes through when TCP repeats it, if that is soon enough."""
        now, step = self._process.sim.now, _RTO
        when = self._unacknowledged_since if self._is_awaiting_ack else now
        while when < now:
            when, step = when + step, 2 * step
        if when < self._last_read + _DEAD_AFTER:
            self._set_timer(when, self._on_connect, self._family)

    def _drop_connection(self) -> None:
        self._family, self._is_stalled = None, False
        self._dial()

    def _dial(self) -> None:
        self._dial_start = self._process.sim.now
        self._plan_dial()

    def _plan_dial(self) -> None:
        """The first SYN that passes wins; a new try every ten seconds."""
        now, found = self._process.sim.now, []
        for family in self._network.families:
            if self._network.can_connect(family):
                begin = self._dial_start + (0.0 if family == self._network.families[0] else _FALLBACK)
                found += [(begin + wait, family) for wait in _SYN if begin + wait >= now][:1]
        again = self._dial_start + _REDIAL
        when, chosen = min(found, default=(again, None))
        if chosen is None or when > again:
            self._set_timer(again, self._dial)
        else:
            self._set_timer(when + _HANDSHAKE, self._on_connect, chosen)

    def _on_connect(self, family: Family) -> None:
        self._family, self._is_stalled, self._is_awaiting_ack = family, False, False
        self._last_read = self._process.sim.now
        for call in list(self.on_up):
            call()
        self._flush()

    def _flush(self) -> None:
        """One held request after the other, in order."""
        if self._queue and self.is_up:
            key = next(iter(self._queue))
            call, args = self._queue.pop(key)
            self.send(key, call, *args)
            self._process.after_jitter(*_FLUSH_INTERVAL, self._flush)

    def _set_timer(self, when: float, call: Callable[..., Any], *args: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._process.after(when - self._process.sim.now, call, *args)

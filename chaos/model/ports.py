"""Ports to the outside world; implemented by observers, transports, power, engine and store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from chaos.model.command import HostCommand, Outcome
from chaos.model.recording import RecordingEntry
from chaos.model.verdict import Verdict

Sink = Callable[[RecordingEntry], None]
ON_OFF_STATE = frozenset({"on", "off", "state"})  # what a PowerControl can do
ON_OFF = frozenset({"on", "off"})
ON = frozenset({"on"})


class Clock(Protocol):
    """The only now() and the only sleep. Times are seconds since the epoch in cluster time."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> bool:
        """Sleep; False if woken early because the run is stopping."""

    def wake(self) -> None:
        """End every sleep, now and from now on, until :meth:`resume`."""

    def resume(self) -> None: ...


class Armed(Protocol):
    """A command that waits on its host for one write."""

    def calibrate(self, now: Callable[[], float]) -> bool:
        """Learn the host's clock beside ours (``now``); whether it can begin at an instant that is agreed upon."""

    def release(self, at: float | None = None) -> None:
        """Let it run, and wait for nothing: one write. What goes wrong is told by :meth:`fire`.

        ``at``: not before this instant, shortly ahead, of the clock that it was tuned to; if it was, else at once.
        """

    def wait(self) -> Outcome:
        """Let it run, unless :meth:`go` has, and wait for its end. ``began`` is the host's own time of start."""

    def cancel(self) -> None:
        """Give it up without running it."""


class Session(Protocol):
    """An open line to one host. Reopens itself after a loss; only what was not sent is ever sent again."""

    def run(self, command: HostCommand) -> Outcome: ...

    def arm(self, command: HostCommand) -> Armed: ...

    def close(self) -> None: ...


class PowerControl(Protocol):
    """How a dead machine comes back. Every method raises NodefallError when it cannot tell or do.

    ``can`` says what it can at all: ``on``, ``off``, and tell the ``state`` at any time.
    """

    @property
    def capabilities(self) -> frozenset[str]: ...

    def state(self) -> str:
        """``on`` or ``off``, never a guess."""

    def on(self) -> None: ...

    def off(self) -> None:
        """At once, without shutting down."""


@runtime_checkable
class RestartPolicyControl(Protocol):
    """A power control of machines that may come on by themselves, as containers with a restart policy do."""

    def restart_policy(self) -> str:
        """As docker writes it: ``no``, ``always``, ``on-failure:1``..."""

    def set_restart_policy(self, policy: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str]


class KubeApi(Protocol):
    """Raw access to one API server. Raises KubeUnreachable (observers.api) when no answer came."""

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        """One request and its answer, whatever the status."""

    def stream(self, path: str, query: Mapping[str, str]) -> AbstractContextManager[Iterator[bytes]]:
        """A watch: chunks of bytes as they come."""

    def kubelet(self, address: str, port: int, path: str) -> Response:
        """GET from a kubelet's own port, with the cluster's credentials."""


class LockGuard(Protocol):
    """What stands between a run and each of its deeds: the cluster's lock. Both raise Aborted."""

    def renew(self) -> bool:
        """Make sure of it with the API server; False where that does not answer."""

    def check(self) -> None:
        """The last thing before the deed, quick: by our own clock."""


class Progress(Protocol):
    """What a person sees while a run is live; ``tick`` says what time it is in the cluster."""

    def phase(self, name: str) -> None: ...

    def step(self, name: str, node: str, what: str) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...

    def note(self, text: str) -> None: ...

    def tick(self, now: float) -> None: ...


class Observer(Protocol):
    """An eye: emits lines to its sink from threads of its own between start and stop; never sees the plan."""

    name: str

    def start(self, sink: Sink) -> None: ...

    def stop(self) -> None: ...

    def has_synced(self) -> bool:
        """True once everything that exists has been seen once."""

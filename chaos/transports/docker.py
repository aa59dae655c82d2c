"""Sessions into containers by ``docker exec`` or ``podman exec``: nodes that are containers and have no sshd.

Every command waits inside for one line, as an armed one does: until that is sent nothing has run, and so "not sent" is
certain. The exit code is the one that the shell inside tells: one that the engine reports may be its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import closing
from threading import Lock
from time import monotonic

from chaos.model.command import ANSWERED, LOST, NOT_SENT, HostCommand, Outcome
from chaos.model.errors import NodefallError, Unreachable
from chaos.transports.containers import Container, engine_error
from chaos.transports.exchange import Ended
from chaos.transports.hostclock import TUNING, HostClock
from chaos.transports.piped import Piped
from chaos.transports.script import telling_argv, tells, waits

_OVER = "it no longer waits on the host"
READY_SECONDS = 15.0  # of wall time, until the shell inside waits


class DockerSession:
    """Thread safe; implements ``chaos.model.ports.Session``. Commands run as root; each is an exec of its own."""

    def __init__(self, container: Container, ready: float = READY_SECONDS) -> None:
        self._container, self._ready = container, ready
        self._all: list[Piped] = []
        self._lock = Lock()

    @property
    def label(self) -> str:
        return f"{self._container.engine} container {self._container.name}"

    def run(self, command: HostCommand) -> Outcome:
        """Send ``command`` once and wait for its end; what goes wrong is told by the outcome."""
        try:
            armed = self.arm(command)
        except NodefallError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Outcome(NOT_SENT, error=f"{error.message}{hint}")
        return armed.fire()

    def arm(self, command: HostCommand) -> ArmedExec:
        """Start ``command`` waiting in the container. Raises Unreachable, or Refused if it is not the same any more."""
        seen = self._container.look()
        if seen.power != "on":
            raise Unreachable(f"{self.label} does not run: it is {seen.status}", hint="power it on")
        mark = f"nodefall-{secrets.token_hex(8)}"
        what = (self._container.engine, "exec", "--interactive", "--user", "0", seen.id)
        deadline = monotonic() + min(self._ready, command.timeout)
        try:
            piped = Piped((*what, *telling_argv(command.argv, mark)), mark, deadline)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{command} cannot be sent to {self.label}: {error}") from error
        first = piped.line()
        if not waits(first):
            piped.finish()
            piped.close()
            raise self._not_ready(piped.stderr or first or "")  # runc's own errors come on stdout
        with self._lock:
            self._all = [kept for kept in self._all if not kept.closed] + [piped]
        return ArmedExec(command, piped, HostClock(tells(first)), self.label)

    def close(self) -> None:
        """Hang up; programs that still run there are left alone, those that wait end without running."""
        with self._lock:
            for piped in self._all:
                piped.stop()

    def _not_ready(self, said: str) -> NodefallError:
        """Nothing has run: that can be tried again, whatever it was."""
        error = engine_error(f"exec in {self.label}", said or f"no answer in {self._ready:g} s")
        return Unreachable(error.message, hint=error.hint)


class ArmedExec:
    """Implements ``chaos.model.ports.Armed``; waits in the container until it is fired or cancelled, once."""

    def __init__(self, command: HostCommand, piped: Piped, clock: HostClock, label: str) -> None:
        self._command, self._piped, self._clock, self._label = command, piped, clock, label
        self._gone = False
        self._unsent: Outcome | None = None

    def tune(self, now: Callable[[], float]) -> bool:
        """A few questions and answers; what breaks meanwhile is told by :meth:`go`."""
        self._piped.extend(monotonic() + TUNING)
        try:
            return self._clock.measure(now, self._piped.send, self._piped.line)
        except OSError:
            return False

    def go(self, at: float | None = None) -> None:
        """One write. Not sent if it no longer waits."""
        if self._gone:
            return
        self._gone, piped = True, self._piped
        if not piped.running:
            self._unsent = Outcome(NOT_SENT, stderr=piped.stderr, error=_OVER)
            return
        piped.extend(monotonic() + self._command.timeout)
        try:
            piped.send(self._clock.word(at))
        except OSError as error:
            self._unsent = Outcome(NOT_SENT, error=f"the line was lost before: {error}")
            return
        piped.feed(self._command.stdin)

    def fire(self) -> Outcome:
        """Go, if it has not, and wait for the end. Once."""
        piped = self._piped
        with closing(piped):
            self.go()
            if self._unsent:
                return self._unsent
            self._unsent = Outcome(NOT_SENT, error=_OVER)
            began = self._clock.began(piped.line)
            return self._outcome(piped, piped.finish(), began)

    def cancel(self) -> None:
        """Close its input: the shell ends without running anything."""
        self._piped.close()

    def _outcome(self, piped: Piped, ended: Ended, began: float | None) -> Outcome:
        reason = {
            Ended.LOST: f"the line to {self._label} was lost before it ended",
            Ended.LATE: f"no answer in {self._command.timeout:g} s; it may still be running",
        }.get(ended, "")
        return Outcome(
            ANSWERED if ended is Ended.EXITED else LOST,
            exit=piped.exit,
            stdout=piped.stdout,
            stderr=piped.stderr,
            began=began,
            error="; ".join(filter(None, (reason, piped.note))),
        )

"""A session that retries commands that were not sent."""

from __future__ import annotations

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import Unreachable
from chaos.core.ports import Armed, Clock, RelayedSession, ServiceSession, Session


class RetryingSession:
    """At most ``tries`` attempts, ``pause`` seconds of cluster time apart; stops when the clock is woken."""

    def __init__(self, session: Session, clock: Clock, tries: int = 3, pause: float = 1.0) -> None:
        self._session, self._clock, self._tries, self._pause = session, clock, tries, pause

    def run(self, command: HostCommand) -> Outcome:
        """Outcome of the session; lost and answered commands are not retried."""
        outcome = self._session.run(command)
        for _ in range(self._tries - 1):
            if outcome.delivery != Delivery.NOT_SENT or not self._clock.sleep(self._pause):
                break
            outcome = self._session.run(command)
        return outcome

    def arm(self, command: HostCommand) -> Armed:
        """Armed command of the session. Arming has no effect on the host, so it can be retried."""
        for _ in range(self._tries - 1):
            try:
                return self._session.arm(command)
            except Unreachable:
                if not self._clock.sleep(self._pause):
                    break
        return self._session.arm(command)

    def client_address(self) -> str:
        """What the session reports, "" where its transport reports none."""
        return self._session.client_address() if isinstance(self._session, ServiceSession) else ""

    def service_quotas(self) -> dict[str, int]:
        """What the session reports, {} where its transport has none."""
        return self._session.service_quotas() if isinstance(self._session, ServiceSession) else {}

    def connect(self) -> None:
        """As the session does, where it connects late."""
        if isinstance(self._session, RelayedSession):
            self._session.connect()

    def peer(self) -> dict[str, str | int]:
        """What the session reports, {} where its programs see it themselves."""
        return self._session.peer() if isinstance(self._session, RelayedSession) else {}

    def close(self) -> None:
        """Close the session."""
        self._session.close()

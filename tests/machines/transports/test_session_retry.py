from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import Unreachable
from chaos.core.ports import Armed
from chaos.core.threads import SYSTEM_THREADS
from chaos.machines.transports.sessions import RetryingSession

TRUE = HostCommand(("true",))


class Scripted:
    """A session with scripted outcomes that counts calls; also a clock that permits ``awake`` sleeps."""

    threads = SYSTEM_THREADS

    def __init__(self, *deliveries: Delivery, awake: int = 99) -> None:
        self.deliveries, self.calls, self.awake = list(deliveries), 0, awake

    def run(self, command: HostCommand) -> Outcome:
        self.calls += 1
        return Outcome(self.deliveries.pop(0))

    def arm(self, command: HostCommand) -> Armed:
        if self.run(command).delivery == Delivery.NOT_SENT:
            raise Unreachable("no")
        return Ready()

    def close(self) -> None: ...

    def now(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> bool:
        self.awake -= 1
        return self.awake >= 0

    def gather(self) -> None: ...

    def settle(self) -> bool:
        return False

    def wake(self) -> None: ...

    def resume(self) -> None: ...


class Ready:
    def calibrate(self, now: Callable[[], float]) -> bool:
        return False

    def release(self, at: float | None = None) -> None: ...

    def wait(self) -> Outcome:
        return Outcome(Delivery.ANSWERED, 0)

    def cancel(self) -> None: ...


@pytest.mark.parametrize(
    ("deliveries", "awake", "calls", "final"),
    [
        ((Delivery.ANSWERED,), 9, 1, Delivery.ANSWERED),
        ((Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.ANSWERED), 9, 3, Delivery.ANSWERED),
        ((Delivery.NOT_SENT, Delivery.LOST, Delivery.ANSWERED), 9, 2, Delivery.LOST),
        ((Delivery.LOST, Delivery.ANSWERED), 9, 1, Delivery.LOST),
        ((Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.ANSWERED), 9, 3, Delivery.NOT_SENT),
        ((Delivery.NOT_SENT, Delivery.ANSWERED), 0, 1, Delivery.NOT_SENT),
    ],
)
def test_only_unsent_commands_are_retried(deliveries: tuple[Delivery, ...], awake: int, calls: int, final: str) -> None:
    fake = Scripted(*deliveries, awake=awake)
    assert RetryingSession(fake, fake).run(TRUE).delivery == final
    assert fake.calls == calls


def test_arming_is_retried() -> None:
    fake = Scripted(Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.ANSWERED)
    assert RetryingSession(fake, fake).arm(TRUE).wait().delivery == Delivery.ANSWERED
    never = Scripted(Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.NOT_SENT)
    with pytest.raises(Unreachable):
        RetryingSession(never, never).arm(TRUE)

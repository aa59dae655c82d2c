from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.hosts.transports.retry import RetryingSession
from chaos.model.command import ANSWERED, LOST, NOT_SENT, HostCommand, Outcome
from chaos.model.errors import Unreachable
from chaos.model.ports import Armed

TRUE = HostCommand(("true",))


class Scripted:
    """Answers in order; counts what was asked of it. Also the clock: ``awake`` sleeps are allowed."""

    def __init__(self, *deliveries: str, awake: int = 99) -> None:
        self.deliveries, self.asked, self.awake = list(deliveries), 0, awake

    def run(self, command: HostCommand) -> Outcome:
        self.asked += 1
        return Outcome(self.deliveries.pop(0))

    def arm(self, command: HostCommand) -> Armed:
        if self.run(command).delivery == NOT_SENT:
            raise Unreachable("no")
        return Ready()

    def close(self) -> None: ...

    def now(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> bool:
        self.awake -= 1
        return self.awake >= 0

    def wake(self) -> None: ...

    def resume(self) -> None: ...


class Ready:
    def calibrate(self, now: Callable[[], float]) -> bool:
        return False

    def release(self, at: float | None = None) -> None: ...

    def wait(self) -> Outcome:
        return Outcome(ANSWERED, 0)

    def cancel(self) -> None: ...


@pytest.mark.parametrize(
    ("deliveries", "awake", "asked", "final"),
    [
        ((ANSWERED,), 9, 1, ANSWERED),
        ((NOT_SENT, NOT_SENT, ANSWERED), 9, 3, ANSWERED),
        ((NOT_SENT, LOST, ANSWERED), 9, 2, LOST),
        ((LOST, ANSWERED), 9, 1, LOST),
        ((NOT_SENT, NOT_SENT, NOT_SENT, ANSWERED), 9, 3, NOT_SENT),
        ((NOT_SENT, ANSWERED), 0, 1, NOT_SENT),
    ],
)
def test_only_what_was_not_sent_is_sent_again(deliveries: tuple[str, ...], awake: int, asked: int, final: str) -> None:
    fake = Scripted(*deliveries, awake=awake)
    assert RetryingSession(fake, fake).run(TRUE).delivery == final
    assert fake.asked == asked


def test_arming_is_tried_again() -> None:
    fake = Scripted(NOT_SENT, NOT_SENT, ANSWERED)
    assert RetryingSession(fake, fake).arm(TRUE).wait().delivery == ANSWERED
    never = Scripted(NOT_SENT, NOT_SENT, NOT_SENT)
    with pytest.raises(Unreachable):
        RetryingSession(never, never).arm(TRUE)

"""A rejected login is not repeated at once, by whichever session: accounts get locked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.machines.transports.sessions import RetryingSession
from chaos.machines.winrm.endpoint import LoginPause, RejectedLogin
from chaos.machines.winrm.session import WinRmSession
from tests.kit.fakes import FakeClock
from tests.kit.wsman_server import WsManServer

RUN = HostCommand((r"C:\Windows\System32\where.exe",), timeout=20)


class Watch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def sessions(service: WsManServer, watch: Watch) -> Iterator[list[WinRmSession]]:
    logins = LoginPause(watch)
    found = [WinRmSession(service.endpoint(), logins=logins) for _ in range(2)]
    yield found
    for session in found:
        session.close()


def test_one_rejection_ends_the_attempts_of_all_sessions(service: WsManServer, sessions: list[WinRmSession]) -> None:
    service.accepts_login = False
    first, second = (RetryingSession(session, FakeClock()).run(RUN) for session in sessions)
    assert (first.delivery, second.delivery) == (Delivery.NOT_SENT, Delivery.NOT_SENT)
    assert len(service.headers) == 1
    assert "rejected the login by basic (401)" in second.error
    assert "not tried again for 15 s, as accounts get locked" in second.error


def test_pauses_double_up_to_two_minutes(watch: Watch) -> None:
    logins = LoginPause(watch)
    pauses = []
    for _ in range(7):
        logins.check()
        logins.reject(RejectedLogin("no"))
        with pytest.raises(RejectedLogin, match=r"no; not tried again for (\d+) s"):
            logins.check()
        begun = watch.seconds
        while True:
            try:
                logins.check()
                break
            except RejectedLogin:
                watch.seconds += 5
        pauses.append(watch.seconds - begun)
    assert pauses == [15, 30, 60, 120, 120, 120, 120]


def test_a_login_is_tried_again_and_accepted_after_the_pause(
    service: WsManServer, sessions: list[WinRmSession], watch: Watch
) -> None:
    service.accepts_login = False
    assert sessions[0].run(RUN).delivery is Delivery.NOT_SENT
    service.accepts_login = True
    watch.seconds = 14.9
    assert sessions[0].run(RUN).delivery is Delivery.NOT_SENT
    watch.seconds = 15.0
    assert sessions[0].run(RUN).delivery is Delivery.ANSWERED
    assert sessions[1].run(RUN).delivery is Delivery.ANSWERED

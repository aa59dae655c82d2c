"""Signals that arrive when a process was just started, before its ID is stored."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from chaos.app import labs
from chaos.cli.app import TerminationSignal
from chaos.core.lab_settings import Lab
from chaos.engine.stop import defer_signals


def _terminate(*_: object) -> None:
    raise TerminationSignal


@pytest.fixture
def _terminated() -> Iterator[None]:
    """SIGTERM raises, as it does in a command."""
    before = signal.signal(signal.SIGTERM, _terminate)
    yield
    signal.signal(signal.SIGTERM, before)


NUMBERS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, TerminationSignal)]


@pytest.mark.usefixtures("_terminated")
@pytest.mark.parametrize(("number", "raised"), NUMBERS)
def test_a_deferred_signal_acts_at_the_end(number: signal.Signals, raised: type[BaseException]) -> None:
    done = []

    def block() -> None:
        with defer_signals():
            signal.raise_signal(number)
            done.append("the rest of the block")

    with pytest.raises(raised):
        block()
    assert done
    with pytest.raises(raised):
        signal.raise_signal(number)


def test_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number, _ in NUMBERS]
    with defer_signals():
        pass
    assert [signal.getsignal(number) for number, _ in NUMBERS] == before


@pytest.mark.lab
@pytest.mark.usefixtures("_terminated")
@pytest.mark.parametrize(("number", "raised"), NUMBERS)
def test_a_lab_that_is_just_being_started_ends(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, raised: type[BaseException]
) -> None:
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(raised), labs.start_lab(Lab(workers=1)):
        pytest.fail("it was interrupted")
    assert [process.returncode is None for process in started] == [False]

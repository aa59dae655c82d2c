"""A simulated run that is watched takes its time, and nothing else of its progress changes."""

from __future__ import annotations

import io

import pytest

from chaos.cli.run.demo import PacedProgress
from chaos.cli.run.progress import make_progress
from tests.kit.fakes import FakeClock


def test_no_more_than_the_pace() -> None:
    clock = FakeClock()
    begin = clock.now()
    progress = PacedProgress(make_progress(io.StringIO()), clock, 40.0)
    progress.tick(1000.0)
    assert clock.now() == begin, "the first tick begins the time"
    progress.tick(1020.0)
    assert clock.now() - begin == pytest.approx(0.5)
    clock.sleep(2.0)  # the run was slower than its pace
    progress.tick(1080.0)
    assert clock.now() - begin == pytest.approx(2.5)
    progress.tick(1140.0)
    assert clock.now() - begin == pytest.approx(3.5)


def test_all_is_passed_on() -> None:
    stream = io.StringIO()
    progress = PacedProgress(make_progress(stream), FakeClock(), 40.0)
    progress.phase("inject")
    progress.step("power-off", "worker-1", "systemctl poweroff")
    progress.note("a note")
    assert [line.strip() for line in stream.getvalue().splitlines()] == [
        "phase: inject",
        "step power-off on worker-1: systemctl poweroff",
        "a note",
    ]

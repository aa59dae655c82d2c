"""Coroutines on the simulated clock."""

from __future__ import annotations

import pytest

from chaos.lab.direct.host import Cancelled, SimWaits, Task
from chaos.lab.sim import SimClock


@pytest.fixture
def sim() -> SimClock:
    return SimClock(100.0, 1)


async def _after(sim: SimClock, seconds: float, value: str) -> str:
    await SimWaits(sim).wait_until(sim.now + seconds)
    return value


def test_a_coroutine_that_waits_for_nothing_is_done_at_once(sim: SimClock) -> None:
    task = Task(_after(sim, 0.0, "now"))
    assert task.done
    assert task.result() == "now"


def test_it_goes_on_when_its_time_has_come(sim: SimClock) -> None:
    task, seen = Task(_after(sim, 2.0, "later")), list[float]()
    task.add_done_callback(lambda _: seen.append(sim.now))
    sim.run_until(101.0)
    assert not task.done
    sim.run_until(110.0)
    assert (task.result(), seen) == ("later", [102.0])


def test_a_task_waits_for_others(sim: SimClock) -> None:
    async def both() -> list[str]:
        jobs = [Task(_after(sim, seconds, f"{seconds}")) for seconds in (3.0, 1.0)]
        return [await job for job in jobs]

    task = Task(both())
    sim.run_until(110.0)
    assert task.result() == ["3.0", "1.0"]


def test_errors_are_those_of_the_result(sim: SimClock) -> None:
    async def fail() -> None:
        await SimWaits(sim).wait_until(101.0)
        raise ValueError("broken")

    task = Task(fail())
    sim.run_until(102.0)
    with pytest.raises(ValueError, match="broken"):
        task.result()


def test_a_cancelled_task_ends_where_it_waits(sim: SimClock) -> None:
    ends: list[float] = []

    async def program() -> None:
        try:
            await SimWaits(sim).wait_until(200.0)
        finally:
            ends.append(sim.now)

    task = Task(program())
    sim.run_until(150.0)
    task.cancel()
    assert ends == [150.0]
    with pytest.raises(Cancelled):
        task.result()
    assert sim.next_due() is None


def test_a_task_that_is_cancelled_while_it_runs_ends_at_its_next_wait(sim: SimClock) -> None:
    tasks: list[Task[str]] = []

    async def program() -> str:
        await SimWaits(sim).wait_until(101.0)
        tasks[0].cancel()
        await SimWaits(sim).wait_until(102.0)
        return "went on"

    tasks.append(Task(program()))
    sim.run_until(110.0)
    with pytest.raises(Cancelled):
        tasks[0].result()

"""How far apart 50 commands start that should start together, over a real sshd on loopback.

The spread of the start times that the hosts report: armed and fired as a step's targets are, beside running on a line
that is open, and beside connecting and then running. All 50 hosts are this one machine: its load is in the figures, and
so is that a host's program, once begun, takes the processor from hosts that have yet to begin. How much that is shows
with a program that is not there, which leaves nothing to start. Exit code 1 if the goal is missed.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, time

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.hosts.concurrency import run_simultaneously
from chaos.engine.inject import START_LEAD
from chaos.hosts.transports.settings import HostSettings
from chaos.hosts.transports.ssh import ArmedCommand, SshSession, open_session
from chaos.model.command import HostCommand
from tests.kit.sshd import serving

HOSTS = 50
ROUNDS = int(os.environ.get("NODEFALL_ROUNDS", "20"))
GOAL = 0.025  # seconds
TRUE = HostCommand(("true",), sudo=False)
NOTHING = HostCommand(("/nonexistent",), sudo=False)
NOW = HostCommand(("date", "+%s.%N"), sudo=False)


def spread(began: Sequence[float | None]) -> float:
    """Seconds between the first and the last start. Raises ValueError if a host did not report one."""
    times = [t for t in began if t is not None]
    if len(times) != HOSTS:
        raise ValueError(f"{HOSTS - len(times)} of {HOSTS} hosts did not say when they began")
    return max(times) - min(times)


def measure_armed(sessions: Sequence[SshSession], command: HostCommand, *, agreed: bool = True) -> float:
    """As a step does it: fired shortly before an instant that is agreed upon; or at once."""

    def arm(session: SshSession) -> ArmedCommand:
        armed = session.arm(command)
        if agreed and not armed.calibrate(time):
            raise ValueError("the clock of a host is not known well enough")
        return armed

    with ThreadPoolExecutor(HOSTS) as pool:
        waiting = list(pool.map(arm, sessions))
    at = time() + START_LEAD if agreed else None
    for armed in waiting:
        armed.release(at)
    return spread([outcome.began for outcome in run_simultaneously(waiting, lambda armed: armed.wait())])


def measure_open_connection(sessions: Sequence[SshSession]) -> float:
    """A thread per host runs the command on the line that is there."""
    return spread([float(outcome.stdout) for outcome in run_simultaneously(sessions, lambda session: session.run(NOW))])


def measure_connect(settings: HostSettings) -> float:
    """A thread per host connects, logs in and runs the command."""

    def run(_: int) -> float:
        session = open_session(settings)
        try:
            return float(session.run(NOW).stdout)
        finally:
            session.close()

    return spread(run_simultaneously(range(HOSTS), run))


def report(name: str, rounds: int, measure: Callable[[], float]) -> float:
    """The median of ``rounds``, printed."""
    figures = sorted(measure() for _ in range(rounds))
    median = statistics.median(figures)
    print(
        f"{name}: spread of {HOSTS} starts, median of {rounds}: {median * 1000:.1f} ms "
        f"({figures[0] * 1000:.1f} to {figures[-1] * 1000:.1f})"
    )
    return median


def main() -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "sshd") as server:
        begin = monotonic()
        print(f"{os.cpu_count()} processors, load before: {os.getloadavg()[0]:.1f}")
        settings = server.settings(connect_timeout=60.0)
        with ThreadPoolExecutor(8) as pool:
            sessions = list(pool.map(lambda _: open_session(settings), range(HOSTS)))
        print(f"{HOSTS} sessions opened in {monotonic() - begin:.1f} s")
        median = report("armed, then fired", ROUNDS, lambda: measure_armed(sessions, TRUE))
        report("the same, with nothing to start", ROUNDS, lambda: measure_armed(sessions, NOTHING))
        report("armed, each begins when it is fired", ROUNDS, lambda: measure_armed(sessions, TRUE, agreed=False))
        report("run on an open line", ROUNDS, lambda: measure_open_connection(sessions))
        for session in sessions:
            session.close()
        report("connect and run", max(ROUNDS // 7, 1), lambda: measure_connect(settings))
    print(f"goal: under {GOAL * 1000:.0f} ms armed: {'met' if median < GOAL else 'missed'}")
    return 0 if median < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

"""Spread of the start times of 50 simultaneous commands, over a real sshd on loopback.

Measured as the hosts report them: armed and released as the targets of a step are (by paramiko and by the ssh program),
run on open connections, and connected and run. All 50 hosts are this machine, so its load is in the figures. A program
that has started also takes the processor from hosts that have not; the size of this effect shows with a missing
program, which starts nothing. Exit code 1 if the goal is missed.
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

from chaos.core.command import HostCommand
from chaos.core.ports import Armed, Session
from chaos.engine.inject import START_LEAD
from chaos.machines.concurrency import run_simultaneously
from chaos.machines.driver import transport_of
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.openssh import openssh_host, ssh_config
from tests.kit.sshd import Server, serving

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
        raise ValueError(f"{HOSTS - len(times)} of {HOSTS} hosts did not report a start time")
    return max(times) - min(times)


def measure_armed(sessions: Sequence[Session], command: HostCommand, *, common_instant: bool = True) -> float:
    """Armed as a step does: released shortly before a common instant; or at once."""

    def arm(session: Session) -> Armed:
        armed = session.arm(command)
        if common_instant and not armed.calibrate(time):
            raise ValueError("the clock of a host could not be calibrated")
        return armed

    with ThreadPoolExecutor(HOSTS) as pool:
        waiting = list(pool.map(arm, sessions))
    at = time() + START_LEAD if common_instant else None
    for armed in waiting:
        armed.release(at)
    return spread([outcome.began for outcome in run_simultaneously(waiting, lambda armed: armed.wait())])


def measure_open_connection(sessions: Sequence[SshSession]) -> float:
    """A thread per host runs the command on an open connection."""
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


def measure_openssh(server: Server) -> None:
    """The same as a step does, by the ssh program."""
    begin = monotonic()
    host = openssh_host(ssh_config(server), connectTimeout="60s")
    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(lambda _: transport_of(host).open_session(host), range(HOSTS)))
    print(f"{HOSTS} sessions of openssh opened in {monotonic() - begin:.1f} s")
    report("openssh: armed, then released", ROUNDS, lambda: measure_armed(sessions, TRUE))
    report("openssh: the same, with nothing to start", ROUNDS, lambda: measure_armed(sessions, NOTHING))
    for session in sessions:
        session.close()


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
        median = report("armed, then released", ROUNDS, lambda: measure_armed(sessions, TRUE))
        report("the same, with nothing to start", ROUNDS, lambda: measure_armed(sessions, NOTHING))
        report("armed, started when released", ROUNDS, lambda: measure_armed(sessions, TRUE, common_instant=False))
        report("run on an open connection", ROUNDS, lambda: measure_open_connection(sessions))
        for session in sessions:
            session.close()
        measure_openssh(server)
        report("connect and run", max(ROUNDS // 7, 1), lambda: measure_connect(settings))
    print(f"goal: under {GOAL * 1000:.0f} ms armed: {'met' if median < GOAL else 'missed'}")
    return 0 if median < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

"""Failsafe timer: undoes a fault on its host by itself if nodefall dies or loses the connection.

The timer is armed before the fault and stopped after the undo. It belongs to the host's PID 1 (systemd-run), so it
survives the end of nodefall and of its session; Windows hosts have a scheduled task instead.
"""

from __future__ import annotations

import re

from chaos.core.action import FailsafeTimer
from chaos.core.command import Delivery, HostCommand, Outcome, is_success
from chaos.core.duration import parse_timespan
from chaos.core.errors import Aborted
from chaos.engine.failsafe_windows import arm_task, disarm_task
from chaos.machines.pool import Hosts

TOLERANCE = 1.0  # seconds, for rounding; the duration of the commands is measured by the host's uptime
_NOT_LOADED = 5  # exit code of systemctl
_UPTIME = HostCommand(("cat", "/proc/uptime"), sudo=False)


def failsafe_command(timer: FailsafeTimer, seconds: float) -> HostCommand:
    """The command that arms ``timer``. AccuracySec is set, as its default of 1 min once delayed a timer by 37 s."""
    return HostCommand(
        (
            "systemd-run",
            f"--on-active={seconds:.3f}s",
            "--timer-property=AccuracySec=100ms",
            "--collect",
            f"--unit={timer.unit}",
            "--",
            *timer.argv,
        )
    )


def arm(hosts: Hosts, node: str, timer: FailsafeTimer, left: float) -> float:
    """Arm ``timer``, at most ``left`` seconds ahead, and read it back; returns its seconds. Raises Aborted."""
    seconds = min(timer.seconds, left)
    if seconds <= 0:
        raise Aborted(f"{node}: failsafe timer {timer.unit} not armed: no time is left of maxDuration")
    if hosts.system_of(node) == "windows":
        return arm_task(hosts, node, timer, seconds)
    before = _read_uptime(hosts, node)
    _run(hosts, node, failsafe_command(timer, seconds))
    after = _read_uptime(hosts, node)
    elapse = _next_elapse(hosts, node, timer.unit)
    if elapse is None:
        raise Aborted(f"{node}: systemd does not report when the timer {timer.unit} elapses")
    if not before - TOLERANCE <= elapse - seconds <= after + TOLERANCE:
        raise Aborted(f"{node}: the timer {timer.unit} elapses in {elapse - after:.1f} s, not in {seconds:.1f} s")
    return seconds


def _read_uptime(hosts: Hosts, node: str) -> float:
    """Seconds since the host's boot. Raises Aborted."""
    found = re.match(r"[\d.]+", _run(hosts, node, _UPTIME).stdout)
    if not found:
        raise Aborted(f"{node}: the uptime cannot be read")
    return float(found[0])


def disarm(hosts: Hosts, node: str, unit: str) -> str:
    """Stop the timer ``unit``. Returns "" once the host no longer has it, otherwise why it may be left."""
    if hosts.system_of(node) == "windows":
        return disarm_task(hosts, node, unit)
    stop = HostCommand(("systemctl", "stop", f"{unit}.timer"), accept=(0, _NOT_LOADED))
    outcome = hosts.send(node, stop)
    if not is_success(stop, outcome):
        return f"the timer {unit} was not stopped: {_failure_reason(outcome)}"
    return f"the timer {unit} is still there" if _next_elapse(hosts, node, unit) is not None else ""


def _next_elapse(hosts: Hosts, node: str, unit: str) -> float | None:
    """Seconds since boot; None if the timer is not active. Raises Aborted when systemd does not respond."""
    show = HostCommand(("systemctl", "show", "--property=NextElapseUSecMonotonic", f"{unit}.timer"), sudo=False)
    value = _run(hosts, node, show).stdout.strip().partition("=")[2]
    return parse_timespan(value)


def _run(hosts: Hosts, node: str, command: HostCommand) -> Outcome:
    outcome = hosts.send(node, command)
    if not is_success(command, outcome):
        raise Aborted(f"{node}: {command}: {_failure_reason(outcome)}")
    return outcome


def _failure_reason(outcome: Outcome) -> str:
    reason = outcome.error or outcome.stderr.strip()
    return reason or (f"exit code {outcome.exit}" if outcome.delivery is Delivery.ANSWERED else "connection lost")

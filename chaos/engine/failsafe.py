"""The timer that heals a host by itself, should we die or lose the line: planted before the fault, stopped after undo.

It belongs to the host's PID 1 (systemd-run), so nothing that happens to us or to our session can stop it.
"""

from __future__ import annotations

import re

from chaos.hosts.pool import Hosts
from chaos.model.action import FailsafeTimer
from chaos.model.command import ANSWERED, HostCommand, Outcome, is_success
from chaos.model.errors import Aborted
from chaos.model.systemd_timespan import parse_timespan

TOLERANCE = 1.0  # seconds, for what is rounded; how long the commands take is known from the host's uptime
_NOT_LOADED = 5
_UPTIME = HostCommand(("cat", "/proc/uptime"), sudo=False)


def failsafe_command(heal: FailsafeTimer, seconds: float) -> HostCommand:
    """AccuracySec defaults to a minute: a timer of 100 s once fired 37 s late."""
    return HostCommand(
        (
            "systemd-run",
            f"--on-active={seconds:.3f}s",
            "--timer-property=AccuracySec=100ms",
            "--collect",
            f"--unit={heal.unit}",
            "--",
            *heal.argv,
        )
    )


def arm(hosts: Hosts, node: str, heal: FailsafeTimer, left: float) -> float:
    """Plant it, at most ``left`` seconds ahead, and read it back; the seconds. Raises Aborted."""
    seconds = min(heal.seconds, left)
    if seconds <= 0:
        raise Aborted(f"{node}: no time is left of maxDuration for a fault that must heal by itself")
    before = _read_uptime(hosts, node)
    _run(hosts, node, failsafe_command(heal, seconds))
    after = _read_uptime(hosts, node)
    elapse = _next_elapse(hosts, node, heal.unit)
    if elapse is None:
        raise Aborted(f"{node}: systemd does not tell when the timer {heal.unit} will elapse")
    if not before - TOLERANCE <= elapse - seconds <= after + TOLERANCE:
        raise Aborted(f"{node}: the timer {heal.unit} elapses in {elapse - after:.1f}s, not in {seconds:.1f}s")
    return seconds


def _read_uptime(hosts: Hosts, node: str) -> float:
    """Raises Aborted."""
    found = re.match(r"[\d.]+", _run(hosts, node, _UPTIME).stdout)
    if not found:
        raise Aborted(f"{node}: the host does not tell its uptime")
    return float(found[0])


def disarm(hosts: Hosts, node: str, unit: str) -> str:
    """Stop the timer if it is still there; empty once it is gone, else why it is not known to be."""
    stop = HostCommand(("systemctl", "stop", f"{unit}.timer"), accept=(0, _NOT_LOADED))
    outcome = hosts.send(node, stop)
    if not is_success(stop, outcome):
        return f"the timer {unit} was not stopped: {_failure_reason(outcome)}"
    return f"the timer {unit} is still there" if _next_elapse(hosts, node, unit) is not None else ""


def _next_elapse(hosts: Hosts, node: str, unit: str) -> float | None:
    """Seconds since boot, None if the timer is not waiting. Raises Aborted where systemd does not answer."""
    show = HostCommand(("systemctl", "show", "--property=NextElapseUSecMonotonic", f"{unit}.timer"), sudo=False)
    value = _run(hosts, node, show).stdout.strip().partition("=")[2]
    return parse_timespan(value)


def _run(hosts: Hosts, node: str, command: HostCommand) -> Outcome:
    outcome = hosts.send(node, command)
    if not is_success(command, outcome):
        raise Aborted(f"{node}: {command}: {_failure_reason(outcome)}")
    return outcome


def _failure_reason(outcome: Outcome) -> str:
    said = outcome.error or outcome.stderr.strip()
    return said or (f"exit code {outcome.exit}" if outcome.delivery == ANSWERED else "the line was lost")

"""Clocks of the host."""

from __future__ import annotations

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact


@host_fact(
    "host-time",
    "time by the host's clock, in seconds since the epoch",
    HostCommand(("date", "+%s.%N"), sudo=False, timeout=5.0),
    form=r"\d+(?:\.(?:\d+|%?N))?\n",
)
def host_time(stdout: str, exit_code: int) -> float:
    """Number: seconds since the epoch, with a fraction."""
    # Busybox does not support %N: its whole seconds become their middle.
    whole, _, fraction = stdout.strip().partition(".")
    if exit_code or not (whole.isascii() and whole.isdigit()):
        raise ValueError("cannot parse the output of date")
    return int(whole) + (float(f"0.{fraction}") if fraction.isascii() and fraction.isdigit() else 0.5)


# Boot time by the unchanged clock, written before the clock is set. Uptime does not depend on the clock.
MARK_FILE = "/run/nodefall-clock"
# Prints the boot time by the present clock. Starting a program takes time: the uptimes before and after are averaged.
BOOT_TIME_SCRIPT = (
    "{ cat /proc/uptime; date +%s.%N; cat /proc/uptime; } | "
    "awk 'NF == 1 { now = $1 } NF == 2 { up += $1 / 2 } END { printf \"%.2f\\n\", now - up }'"
)


@host_fact(
    "clock-skew",
    "seconds by which nodefall has set the clock ahead",
    HostCommand(("sh", "-c", f"{BOOT_TIME_SCRIPT} && if test -e {MARK_FILE}; then cat {MARK_FILE}; fi"), sudo=False),
    form=r"(?:-?\d+(?:\.\d+)?\n){1,2}",
)
def clock_skew(stdout: str, exit_code: int) -> int:
    """Whole number: seconds, 0 for an unchanged clock."""
    boot_times = [float(word) for word in stdout.split()]
    if exit_code or len(boot_times) not in (1, 2):
        raise ValueError("the boot time was not printed")
    return round(boot_times[0] - boot_times[-1])


# Real-time clock with an alarm: it can power on a host without power control.
@host_fact(
    "rtc",
    "whether the host has a real-time clock with an alarm, and rtcwake (util-linux) to set it",
    HostCommand(("rtcwake", "-m", "show"), accept=(0, 1, 127)),
    form=r"(?:rtcwake: [^\n]+\n)*(?:alarm: [^\n]+\n)?",
)
def rtc(stdout: str, exit_code: int) -> bool:
    """True or false: true if rtcwake reads an alarm; ``-m show`` changes nothing."""
    if exit_code not in (0, 1, 127):
        raise ValueError("rtcwake did not answer")
    return exit_code == 0 and any(line.startswith("alarm:") for line in stdout.splitlines())

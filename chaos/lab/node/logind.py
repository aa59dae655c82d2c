"""The journal of one machine, on disk: log entries of the kubelet's shutdown manager in klog's format.

Messages and levels are those of nodeshutdown_manager.go and nodeshutdown_manager_linux.go; the line numbers of the
source are invented.
systemd-logind of one machine: delay inhibitors, two-step shutdown, scheduled shutdown. Facts 1.1, 1.7, 18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from chaos.lab.rules.node import LogindRules
from chaos.lab.sim import SimClock, Timer

KUBELET = "kubelet.service"


@dataclass(frozen=True, slots=True)
class Record:
    t: float
    unit: str
    message: str


class Journal:
    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._records: list[Record] = []

    def write(self, pid: int, source: str, message: str, **values: object) -> None:
        """Append a structured entry of the kubelet."""
        now = self._sim.now
        stamp = datetime.fromtimestamp(now, UTC).strftime("%m%d %H:%M:%S.%f")
        pairs = "".join(f" {key}={_value(value)}" for key, value in values.items())
        text = f'I{stamp} {pid:>7} {source}.go:1] "{message}"{pairs}'
        self._records.append(Record(now, KUBELET, text))

    def since(self, t: float, unit: str) -> list[Record]:
        """Entries of a unit from ``t`` on."""
        return [record for record in self._records if record.t >= t and record.unit == unit]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


Kind = Literal["poweroff", "reboot"]
_NOLOGIN_LEAD = 300.0  # seconds before a scheduled shutdown in which only root can log in: logind-dbus.c
_DROP_INS = ("/usr/lib/systemd/logind.conf.d/", "/etc/systemd/logind.conf.d/")
_DELAY = re.compile(r"^InhibitDelayMaxSec=(\d+)s?$", re.MULTILINE)
_POWER_KEY = re.compile(r"^HandlePowerKey=([a-z-]+)$", re.MULTILINE)
_SHUTDOWN_KINDS: Mapping[str, Kind] = {"poweroff": "poweroff", "reboot": "reboot"}


def inhibit_delay_max(files: Mapping[str, str], default: float) -> float:
    """InhibitDelayMaxSec by the drop-ins."""
    value = _last_setting(files, _DELAY)
    return float(value) if value else default


def _last_setting(files: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    """A setting of the drop-ins, "" without one. One in /etc masks its namesake in /usr/lib; the last name wins."""
    found = {}
    for directory in _DROP_INS:
        for path, text in files.items():
            if path.startswith(directory) and path.endswith(".conf"):
                found[path.removeprefix(directory)] = text
    values = [match[1] for _, text in sorted(found.items()) for match in pattern.finditer(text)]
    return values[-1] if values else ""


class LogindError(RuntimeError):
    """Error response of logind."""


@dataclass(frozen=True, slots=True)
class Inhibitor:
    what: str
    who: str
    why: str
    mode: str
    uid: int
    pid: int


class Logind:
    """logind, which calls ``execute`` with the kind of shutdown when no inhibitor delays it.

    ``files``: contents by path, with logind's drop-ins. ``installed``: false for a machine without logind.
    """

    def __init__(
        self, sim: SimClock, version: int, execute: Callable[[Kind], None], rules: LogindRules,
        files: dict[str, str] | None = None, installed: bool = True,
    ) -> None:  # fmt: skip
        self.version, self.installed = version, installed
        self._files = files if files is not None else {}
        self._rules = rules
        self.inhibit_delay_max, self.power_key_action = rules.inhibit_delay_max, rules.handle_power_key
        self.announces_forced = rules.announces_forced
        self.preparing_for_shutdown = False
        self.is_running = False
        self.bus_pid, self.pid = 300, 310  # of D-Bus and of logind; a restart changes them
        self._sim, self._execute = sim, execute
        self._locks: list[Inhibitor] = []
        self._listeners: list[Callable[[bool], None]] = []
        self._on_bus_lost: list[Callable[[], None]] = []
        self._pending_schedule: tuple[Kind, float] | None = None
        self._schedule_timer: Timer | None = None
        self._delayed_kind: Kind | None = None
        self._delay_timer: Timer | None = None
        self._last_delivery = 0.0
        self.refuses_logins = False  # /run/nologin exists
        self._nologin_timer: Timer | None = None
        self._made_nologin = False  # and this logind made it

    def start(self) -> None:
        """Start with the boot of the machine."""
        self.is_running = self.installed
        self.reload()

    def reload(self) -> None:
        """Handle SIGHUP: read the drop-ins; the last one by file name wins (facts 1.7)."""
        self.inhibit_delay_max = inhibit_delay_max(self._files, self._rules.inhibit_delay_max)
        self.power_key_action = _last_setting(self._files, _POWER_KEY) or self._rules.handle_power_key

    def press_power_key(self) -> None:
        """Begin what HandlePowerKey says, if logind runs and nothing else is in progress; errors are not reported."""
        kind = _SHUTDOWN_KINDS.get(self.power_key_action)
        if kind and self.is_running and not self.preparing_for_shutdown:
            self._begin(kind)

    def power_off(self) -> None:
        """Start a power-off, as ``systemctl poweroff``. Raises LogindError if a shutdown is in progress."""
        self._begin("poweroff")

    def reboot(self) -> None:
        """Start a reboot, as ``systemctl reboot``. Raises LogindError if a shutdown is in progress."""
        self._begin("reboot")

    def schedule(self, kind: str, at: float) -> None:
        """Schedule a shutdown at a time in epoch seconds; it replaces an earlier schedule. Raises LogindError."""
        if kind not in ("poweroff", "reboot"):
            raise LogindError(f"shutdown type {kind!r} is not simulated")
        self._check_available()
        self._clear_schedule()
        chosen: Kind = "poweroff" if kind == "poweroff" else "reboot"
        self._pending_schedule = (chosen, at)
        self._schedule_timer = self._sim.at(at, self._on_schedule, chosen)
        self._nologin_timer = self._sim.at(max(self._sim.now, at - _NOLOGIN_LEAD), self._refuse_logins)
        if self._rules.announces_schedules:
            self.emit_prepare_for_shutdown(True)

    def cancel_scheduled(self) -> bool:
        """Cancel, as ``shutdown -c``; a delayed shutdown only from systemd 257 on. Whether there was a schedule."""
        if self._delayed_kind is not None and self.version >= self._rules.cancels_in_flight_since:
            self._delayed_kind, self.preparing_for_shutdown = None, False
            self._cancel_delay_timer()
            self._clear_schedule()
            return True
        had = self._pending_schedule is not None
        self._clear_schedule()
        return had

    def inhibitors(self) -> list[dict[str, str | int]]:
        """Rows of ``systemd-inhibit --list``: what, who, why, mode, uid, pid."""
        return [
            {"what": i.what, "who": i.who, "why": i.why, "mode": i.mode, "uid": i.uid, "pid": i.pid}
            for i in self._locks
        ]

    def scheduled_shutdown(self) -> tuple[str, float] | None:
        """Kind and time of the scheduled shutdown."""
        return self._pending_schedule

    def emit_prepare_for_shutdown(self, active: bool) -> None:
        """Emit the signal, as any root process can; the state of logind does not change (facts 1.8)."""
        for listener in list(self._listeners):
            arrives = self._sim.now + self._sim.rng.uniform(0.001, 0.004)
            self._last_delivery = max(self._last_delivery, arrives)  # a bus keeps the order of its messages
            self._sim.at(self._last_delivery, self._deliver, listener, active)

    def restart(self) -> None:
        """Restart the service: locks and the schedule persist in /run, a delayed shutdown is lost."""
        self.pid += 1
        self._made_nologin = False  # forgotten: the file stays when the shutdown is cancelled (systemd issue 20129)
        self._delayed_kind, self.preparing_for_shutdown = None, False
        self._cancel_delay_timer()
        self.reload()

    def restart_bus(self) -> None:
        """Restart D-Bus: locks remain, signals in transit are lost, and listeners are disconnected."""
        self.bus_pid += 1
        lost, self._on_bus_lost = self._on_bus_lost, []
        self._listeners.clear()
        for call in lost:
            call()

    def inhibit(self, lock: Inhibitor) -> None:
        """Take a delay lock. Raises LogindError during a shutdown."""
        if self.preparing_for_shutdown:
            raise LogindError("The operation inhibition has been requested for is already running")
        self._locks.append(lock)

    def release(self, lock: Inhibitor) -> None:
        """Close the lock's file descriptor if it is open."""
        self._locks = [other_lock for other_lock in self._locks if other_lock is not lock]
        if self._delayed_kind is not None and not self._locks:
            self._execute_shutdown()

    def listen(self, listener: Callable[[bool], None], lost: Callable[[], None] | None = None) -> None:
        """Subscribe to PrepareForShutdown; ``lost`` is called once if the bus disconnects."""
        self._listeners.append(listener)
        if lost is not None:
            self._on_bus_lost.append(lost)

    def unlisten(self, listener: Callable[[bool], None], lost: Callable[[], None] | None = None) -> None:
        """Unsubscribe; signals in transit are not delivered."""
        self._on_bus_lost = [other for other in self._on_bus_lost if other != lost]
        self._listeners = [other for other in self._listeners if other != listener]

    def stop(self) -> None:
        """Stop with the machine: state in memory and /run is lost."""
        self.restart()
        self.is_running = False
        self._clear_schedule()
        self.refuses_logins = False
        self._locks.clear()
        self._listeners.clear()
        self._on_bus_lost.clear()

    def _deliver(self, listener: Callable[[bool], None], active: bool) -> None:
        if listener in self._listeners:
            listener(active)

    def _on_schedule(self, kind: Kind) -> None:
        self._pending_schedule = self._schedule_timer = None
        if not self.preparing_for_shutdown:
            self._begin(kind)

    def _refuse_logins(self) -> None:
        self._nologin_timer = None
        self.refuses_logins = self._made_nologin = True

    def _check_available(self) -> None:
        if not self.is_running:
            raise LogindError("logind does not run")
        if self.preparing_for_shutdown:
            raise LogindError("There's already a shutdown or sleep operation in progress")

    def _begin(self, kind: Kind) -> None:
        self._check_available()
        self.preparing_for_shutdown = True
        self.emit_prepare_for_shutdown(True)
        self._delayed_kind = kind
        if self._locks and self._rules.heeds_inhibitors:
            self._delay_timer = self._sim.after(self.inhibit_delay_max, self._execute_shutdown)
        else:
            self._execute_shutdown()

    def _execute_shutdown(self) -> None:
        kind, self._delayed_kind = self._delayed_kind, None
        self._cancel_delay_timer()
        if kind is not None:
            self._execute(kind)

    def _clear_schedule(self) -> None:
        if self._schedule_timer is not None:
            self._schedule_timer.cancel()
        if self._nologin_timer is not None:
            self._nologin_timer.cancel()
        self._pending_schedule = self._schedule_timer = self._nologin_timer = None
        if self._made_nologin:
            self.refuses_logins = self._made_nologin = False

    def _cancel_delay_timer(self) -> None:
        if self._delay_timer is not None:
            self._delay_timer.cancel()
        self._delay_timer = None

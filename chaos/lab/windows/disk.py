r"""What a Windows machine has on disk.

Files of a Windows machine by path. ``C:\var\lib\kubelet`` is what Go programs call ``/var/lib/kubelet``.
Registry of one Windows machine, on disk: keys and values, whose names ignore case.
The System event log of one Windows machine, on disk: events of shutdowns and boots, with the values of their texts.
Records have the time of the machine's clock.
Clock of one Windows machine: wall clock time, and the services that set it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from chaos.lab.sim import SimClock, Timer


def _key(path: str) -> str:
    r"""Key in Machine.files: the path from the root of drive C, with slashes; other drives keep their letter."""
    text = path.replace("\\", "/")
    return text[2:] if text[:2].lower() == "c:" else text


def _find(files: dict[str, str], path: str) -> str:
    """The key in the case of its first write; names ignore case."""
    wanted = _key(path).lower()
    return next((key for key in files if key.lower() == wanted), _key(path))


def read_file(files: dict[str, str], path: str) -> str | None:
    """Content of a file, None if it does not exist."""
    return files.get(_find(files, path))


def write_file(files: dict[str, str], path: str, content: str | None) -> None:
    """Write a file, or delete it for None."""
    key = _find(files, path)
    if content is None:
        files.pop(key, None)
    else:
        files[key] = content


_ROOT = "HKEY_LOCAL_MACHINE"
CONTROL = r"HKLM\SYSTEM\CurrentControlSet\Control"
CRASH_CONTROL = CONTROL + r"\CrashControl"
SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"
PREFETCH = CONTROL + r"\Session Manager\Memory Management\PrefetchParameters"

Data = str | int | tuple[str, ...]


class KeyPathError(ValueError):
    """The path does not begin with a known root."""


@dataclass(frozen=True, slots=True)
class Value:
    """``data``: a number for REG_DWORD and REG_QWORD, a tuple for REG_MULTI_SZ, otherwise text."""

    name: str
    kind: str
    data: Data


def full_path(path: str) -> str:
    """Path with the long name of its root, which is HKLM. Raises KeyPathError."""
    root, _, rest = path.partition("\\")
    if root.upper() not in ("HKLM", _ROOT) or not rest:
        raise KeyPathError(path)
    return f"{_ROOT}\\{rest}"


class WindowsRegistry:
    """Values by key and name. Paths may begin with a short or a long root name."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, dict[str, Value]]] = {}  # by lower-case path: the path as created, the values

    def set(self, path: str, name: str, kind: str, data: Data) -> None:
        """Write a value and create its key. Raises KeyPathError."""
        self.create(path)
        self._keys[full_path(path).lower()][1][name.lower()] = Value(name, kind, data)

    def create(self, path: str) -> None:
        """Create a key. Raises KeyPathError."""
        full = full_path(path)
        self._keys.setdefault(full.lower(), (full, {}))

    def value(self, path: str, name: str) -> Value | None:
        """Read one value. Raises KeyPathError."""
        _, values = self._keys.get(full_path(path).lower(), ("", {}))
        return values.get(name.lower())

    def number(self, path: str, name: str) -> int | None:
        """Read a number, None if the value does not exist or is not a number."""
        found = self.value(path, name)
        return found.data if found and isinstance(found.data, int) else None

    def strings(self, path: str, name: str) -> tuple[str, ...] | None:
        """Read a REG_MULTI_SZ value, None if there is none."""
        found = self.value(path, name)
        return found.data if found and isinstance(found.data, tuple) else None

    def text(self, path: str, name: str) -> str:
        """Read a text, empty if there is none."""
        found = self.value(path, name)
        return found.data if found and isinstance(found.data, str) else ""

    def values(self, path: str) -> list[Value] | None:
        """All values of a key, None if the key does not exist. Raises KeyPathError."""
        found = self._keys.get(full_path(path).lower())
        return None if found is None else list(found[1].values())

    def display_path(self, path: str) -> str:
        """Path of an existing key with the case of its creation. Raises KeyPathError."""
        full = full_path(path)
        return self._keys.get(full.lower(), (full, {}))[0]

    def delete_key(self, path: str) -> None:
        """Delete a key with its values. Raises KeyPathError."""
        self._keys.pop(full_path(path).lower(), None)


EVENT_LOG = "EventLog"
USER32 = "User32"
KERNEL_GENERAL = "Microsoft-Windows-Kernel-General"
KERNEL_POWER = "Microsoft-Windows-Kernel-Power"
_BUG_CHECK_CODE = 0xD1  # of NotMyFault: DRIVER_IRQL_NOT_LESS_OR_EQUAL
_LEVELS = {41: 1, 6008: 2}  # critical, and error; the other events are information
_INFORMATION = 4


@dataclass(frozen=True, slots=True)
class EventRecord:
    """``data``: the values of EventData in order, for sources without names the first column is empty."""

    record_id: int
    t: float
    source: str
    event_id: int
    data: tuple[tuple[str, str], ...]

    @property
    def level(self) -> int:
        """Severity."""
        return _LEVELS.get(self.event_id, _INFORMATION)


class EventLog:
    """Records of the log System, the oldest first."""

    def __init__(self, clock: Now, computer: str) -> None:
        self.records: list[EventRecord] = []
        self._clock, self._computer, self._count = clock, computer, 0

    @property
    def now(self) -> float:
        """The time by the machine's clock."""
        return self._clock.now

    def write(self, source: str, event_id: int, *data: tuple[str, str]) -> None:
        """Append a record."""
        self._count += 1
        self.records.append(EventRecord(self._count, self._clock.now, source, event_id, data))

    def log_shutdown_request(self, process: str, user: str, kind: str, reason: str, comment: str) -> None:
        """User32 1074: who asked for a shutdown, and why. ``kind``: restart or power off; ``reason`` with its code."""
        title, _, code = reason.partition("|")
        data = (process, self._computer, title, code, kind, comment, user)
        self.write(USER32, 1074, *((f"param{n}", text) for n, text in enumerate(data, 1)))

    def log_boot(self, *, clean: bool, bug_check: bool, stopped_at: float) -> None:
        """The events of a start; after an unclean stop also Kernel-Power 41 and EventLog 6008."""
        self.write(KERNEL_GENERAL, 12, ("StartTime", stamp(self._clock.now)))
        if not clean:
            self.write(KERNEL_POWER, 41, ("BugcheckCode", str(_BUG_CHECK_CODE if bug_check else 0)))
            when = datetime.fromtimestamp(stopped_at, UTC)
            time, date = when.strftime("%I:%M:%S %p").lstrip("0"), f"{when.month}/{when.day}/{when.year}"
            self.write(EVENT_LOG, 6008, ("", time), ("", date))

    def log_stop(self) -> None:
        """The last events before a clean stop."""
        self.write(KERNEL_GENERAL, 13, ("StopTime", stamp(self._clock.now)))
        self.write(EVENT_LOG, 6006)


def stamp(t: float) -> str:
    """A time as events have it."""
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


class Now(Protocol):
    """What has a present time in seconds since the epoch."""

    @property
    def now(self) -> float: ...


class MachineClock:
    """``offset``: seconds by which the clock is ahead of simulated time; it persists over a boot, as in the RTC.

    ``on_change``: called with the time before and after a change.
    """

    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self.offset = 0.0
        self.on_change: list[Callable[[float, float], None]] = []

    @property
    def now(self) -> float:
        return self._sim.now + self.offset

    def adjust(self, seconds: float) -> None:
        """Set the clock ahead, or back for a negative number."""
        before = self.now
        self.offset += seconds
        for call in list(self.on_change):
            call(before, self.now)

    def correct(self) -> None:
        """Set the clock right."""
        if self.offset:
            self.adjust(-self.offset)


class TimeSync:
    """Sets the clock right some time after it was set wrong, while one of ``services`` runs.

    ``services``: seconds by name of a service. ``is_running``: whether the service of that name runs.
    """

    def __init__(
        self, sim: SimClock, clock: MachineClock, services: Mapping[str, float], is_running: Callable[[str], bool]
    ) -> None:
        self._sim, self._clock, self._services, self._is_running = sim, clock, services, is_running
        self._timers: dict[str, Timer] = {}
        clock.on_change.append(lambda *_: self.check())

    def check(self) -> None:
        """Start the wait of every service that runs, and end that of every other, after a change of either."""
        for name, seconds in self._services.items():
            is_due = self._clock.offset != 0 and self._is_running(name)
            if is_due and name not in self._timers:
                self._timers[name] = self._sim.after(seconds, self._correct, name)
            elif not is_due and (timer := self._timers.pop(name, None)) is not None:
                timer.cancel()

    def _correct(self, name: str) -> None:
        self._timers.pop(name, None)
        self._clock.correct()

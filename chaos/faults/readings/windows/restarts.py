"""Restarts of Windows: how it stopped, whether it boots by itself after a crash, and what waits for a restart.

``wevtutil.exe qe System``: events of the System log as XML, which is not translated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from chaos.core.command import HostCommand
from chaos.core.fact import ANY_TEXT, host_fact
from chaos.core.windows import powershell, system_program
from chaos.faults.readings.windows._registry import VALUE, parse_number, query_value

_NAMESPACE = "{http://schemas.microsoft.com/win/2004/08/events/event}"
KERNEL_GENERAL, KERNEL_POWER = "Microsoft-Windows-Kernel-General", "Microsoft-Windows-Kernel-Power"
EVENTS = ANY_TEXT  # form: the whole text must be XML
EVENT_LOG, USER32 = "EventLog", "User32"


@dataclass(frozen=True, slots=True)
class SystemEvent:
    """``data``: the values of EventData in order; ``names``: their names, "" where the source gives none."""

    source: str
    event_id: int
    names: tuple[str, ...]
    data: tuple[str, ...]

    @property
    def key(self) -> tuple[str, int]:
        """Source and ID: one ID means something else with another source."""
        return self.source, self.event_id

    def value(self, name: str) -> str:
        """Value of a named entry of EventData; "" if there is none."""
        return dict(zip(self.names, self.data, strict=True)).get(name, "")


def query_words(events: Sequence[tuple[str, int]], count: int) -> tuple[str, ...]:
    """Program and arguments that print the newest events of these sources and IDs, the newest first."""
    sources = " or ".join(f"Provider[@Name='{source}']" for source in dict.fromkeys(source for source, _ in events))
    ids = " or ".join(f"EventID={number}" for number in sorted({number for _, number in events}))
    query = f"/q:*[System[({sources}) and ({ids})]]"
    return (system_program("wevtutil"), "qe", "System", query, f"/c:{count}", "/rd:true", "/f:xml")


def query_events(events: Sequence[tuple[str, int]], count: int) -> HostCommand:
    """Command whose output :func:`parse_events` understands."""
    return HostCommand(query_words(events, count))


def parse_events(stdout: str, exit_code: int) -> list[SystemEvent]:
    """Events in the order of the output, which has no common root element. Raises ValueError."""
    if exit_code:
        raise ValueError("cannot parse the output of wevtutil.exe")
    try:
        root = ElementTree.fromstring(f"<Events>{stdout}</Events>")  # noqa: S314 - of a host that obeys us
    except ElementTree.ParseError as error:
        raise ValueError(f"the events are no XML: {error}") from error
    return [_event(element) for element in root]


def _event(element: ElementTree.Element) -> SystemEvent:
    """Raises ValueError for an element that is no event."""
    system = element.find(f"{_NAMESPACE}System")
    provider = None if system is None else system.find(f"{_NAMESPACE}Provider")
    number = "" if system is None else system.findtext(f"{_NAMESPACE}EventID", "")
    if provider is None or not (number.isascii() and number.isdigit()):
        raise ValueError(f"unexpected element among the events: {element.tag}")
    data = element.findall(f"{_NAMESPACE}EventData/{_NAMESPACE}Data")
    return SystemEvent(
        provider.get("Name", ""),
        int(number),
        tuple(item.get("Name", "") for item in data),
        tuple(item.text or "" for item in data),
    )


CLEAN, UNCLEAN, BUG_CHECK, UNKNOWN = "clean", "unclean", "bug-check", "unknown"
_STARTED, _NOT_CLEAN, _UNEXPECTED = (KERNEL_GENERAL, 12), (KERNEL_POWER, 41), (EVENT_LOG, 6008)
_STOPPING, _LOG_STOPPED = (KERNEL_GENERAL, 13), (EVENT_LOG, 6006)
_EVENTS = (_STARTED, _NOT_CLEAN, _UNEXPECTED, _STOPPING, _LOG_STOPPED)
_COUNT = 8  # of one boot and the stop before it there are four at most


@host_fact(
    "last-stop",
    "how the machine stopped before it booted: clean, unclean, bug-check or unknown",
    query_events(_EVENTS, _COUNT),
    form=EVENTS,
)
def last_stop(stdout: str, exit_code: int) -> str:
    """Text: clean, unclean (the power was lost, or it hung), bug-check (the kernel crashed) or unknown.

    Unknown after the first boot, and where the log was cleared or the events have been overwritten.
    """
    events = parse_events(stdout, exit_code)
    boot = next((index for index, event in enumerate(events) if event.key == _STARTED), None)
    return UNKNOWN if boot is None else _stop_before(events[:boot], events[boot + 1 :])


def _stop_before(after: Sequence[SystemEvent], before: Sequence[SystemEvent]) -> str:
    """How Windows stopped, from the events before and after the last start, the newest first."""
    crash = next((event for event in after if event.key == _NOT_CLEAN), None)
    if crash is not None and crash.value("BugcheckCode") not in ("", "0"):
        return BUG_CHECK
    if crash is not None or any(event.key == _UNEXPECTED for event in after):
        return UNCLEAN
    if before and before[0].key in (_STOPPING, _LOG_STOPPED):
        return CLEAN
    return UNKNOWN


@host_fact(
    "crash-auto-reboot",
    "whether the machine boots again by itself after a bug check",
    query_value(r"HKLM\SYSTEM\CurrentControlSet\Control\CrashControl", "AutoReboot"),
    form=VALUE,
)
def crash_auto_reboot(stdout: str, exit_code: int) -> bool:
    """True or false: AutoReboot of CrashControl."""
    return parse_number(stdout, exit_code, "AutoReboot") != 0


_PENDING_MARKS = {"PackagesPending", "RebootInProgress", "RebootPending", "RebootRequired"}


@host_fact(
    "pending-reboot",
    "marks of updates that wait for a restart, which then takes minutes longer",
    HostCommand(powershell("read-pending-reboot")),
)
def pending_reboot(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of the marks that are there.

    Of servicing: PackagesPending, RebootInProgress, RebootPending; of Windows Update: RebootRequired.
    """
    rows = dict(line.split() for line in stdout.splitlines() if len(line.split()) == 2)
    if exit_code or rows.keys() != _PENDING_MARKS or not set(rows.values()) <= {"True", "False"}:
        raise ValueError("the keys of pending updates were not read")
    return sorted(name for name, there in rows.items() if there == "True")

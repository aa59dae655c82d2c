"""``wevtutil.exe qe System``: events of the System log as XML, which is not translated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from chaos.core.command import HostCommand
from chaos.core.fact import ANY_TEXT
from chaos.core.windows import system_program

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

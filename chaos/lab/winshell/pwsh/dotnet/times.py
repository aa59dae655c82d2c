"""[DateTime], [DateTimeOffset], [TimeSpan] and [Diagnostics.Stopwatch]: by the machine's clock, and by its uptime."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.values import TICKS, DateTime, ScriptError, TimeSpan, Value, call_error, to_number, to_text

_SPAN = re.compile(r"(-?)(?:(\d+)\.)?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?")


def now(process: WinProcess, *, is_utc: bool = False, offset: bool = False) -> DateTime:
    """The time by the machine's clock."""
    return DateTime(round(process.machine.clock.now * TICKS), is_utc, offset)


def to_span(value: Value) -> TimeSpan:
    """Ticks of a number, or the text ``[d.]hh:mm[:ss[.f]]``. Raises ScriptError."""
    if isinstance(value, TimeSpan):
        return value
    if isinstance(value, int | float):
        return TimeSpan(int(value))
    match = _SPAN.fullmatch(to_text(value))
    if not match:
        text = f'Cannot convert value "{to_text(value)}" to type "System.TimeSpan".'
        raise ScriptError(text, "InvalidCastParseTargetInvocation", "InvalidArgument: (:) [], RuntimeException")
    days, hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4, 5))
    ticks = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * TICKS + int((match[6] or "0").ljust(7, "0"))
    return TimeSpan(-ticks if match[1] else ticks)


def _span(unit: float) -> Callable[[WinProcess, Value], TimeSpan]:
    # .NET Framework rounds to whole milliseconds, other than later versions
    return lambda _, value: TimeSpan(round(to_number(value) * unit * 1000) * (TICKS // 1000))


def parse_time(text: str) -> DateTime | None:
    """An ISO time, None if it is none. One without a zone is local, and local time is UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return DateTime(round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * TICKS), text.endswith("Z"))


def _parse(_: WinProcess, text: Value) -> DateTime:
    found = parse_time(to_text(text))
    if found is None:
        raise call_error("Parse", 1, "String was not recognized as a valid DateTime.", "FormatException")
    return found


def _from_unix(unit: int) -> Callable[[WinProcess, Value], DateTime]:
    return lambda _, value: DateTime(int(to_number(value)) * unit, is_utc=True, offset=True)


PROPERTIES: dict[str, dict[str, Callable[[WinProcess], Value]]] = {
    "datetime": {"now": now, "utcnow": lambda process: now(process, is_utc=True)},
    "datetimeoffset": {
        "now": lambda process: now(process, offset=True),
        "utcnow": lambda process: now(process, is_utc=True, offset=True),
    },
    "timespan": {"zero": lambda _: TimeSpan(0)},
    "diagnostics.stopwatch": {"frequency": lambda _: TICKS},
}
METHODS: dict[str, dict[str, Callable[..., Value]]] = {
    "datetime": {"parse": _parse},
    "datetimeoffset": {
        "fromunixtimeseconds": _from_unix(TICKS),
        "fromunixtimemilliseconds": _from_unix(TICKS // 1000),
    },
    "timespan": {
        "frommilliseconds": _span(0.001),
        "fromseconds": _span(1.0),
        "fromminutes": _span(60.0),
        "fromhours": _span(3600.0),
        "fromticks": lambda _, value: TimeSpan(int(to_number(value))),
        "parse": lambda _, text: to_span(text),
    },
    "diagnostics.stopwatch": {"gettimestamp": lambda process: int(process.machine.uptime * TICKS)},
}
CONSTRUCTORS: dict[str, Callable[..., Value]] = {
    "timespan": lambda _, hours, minutes, seconds: TimeSpan(
        ((int(to_number(hours)) * 60 + int(to_number(minutes))) * 60 + int(to_number(seconds))) * TICKS
    ),
}

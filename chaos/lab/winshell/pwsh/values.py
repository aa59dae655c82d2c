"""Values of scripts: None, bool, int, float, str, lists, tables, times, and objects with properties and methods."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Value = Any  # of a dynamic language: what a script computes
Method = Callable[..., Awaitable[Value] | Value]
TICKS = 10_000_000  # .NET: in a second
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_PART = re.compile(r"'([^']*)'|yyyy|MMMM|MMM|MM|M|dddd|ddd|dd|d|HH|H|hh|h|mm|m|ss|s|f+|tt|zzz|K|\\(.)")
_STANDARD = {"s": "yyyy-MM-ddTHH:mm:ss", "u": "yyyy-MM-dd HH:mm:ssZ", "o": "yyyy-MM-ddTHH:mm:ss.fffffffK"}


class ScriptError(Exception):
    """An error record. ``ends``: whether it ends the script whatever $ErrorActionPreference is.

    ``inner``: message of the inner exception. ``command``: the name that the message begins with, if any.
    """

    def __init__(
        self, message: str, identifier: str, category: str = "", *, ends: bool = False, inner: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.identifier, self.category, self.ends = message, identifier, category, ends
        self.inner, self.command = inner, ""


def call_error(method: str, count: int, inner: str, kind: str = "Exception") -> ScriptError:
    """The error for an exception that a .NET method throws."""
    text = f'Exception calling "{method}" with "{count}" argument(s): "{inner}"'
    return ScriptError(text, kind, "NotSpecified: (:) [], MethodInvocationException", inner=inner)


@dataclass(eq=False)
class NetObject:
    """An object: its .NET or CIM type, properties in order, methods; names ignore case. ``text``: of ToString()."""

    type: str
    properties: dict[str, Value] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)
    text: str = ""

    def key(self, name: str) -> str | None:
        """The property's name in its own case."""
        return next((key for key in self.properties if key.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True, order=True)
class TimeSpan:
    ticks: int

    @property
    def seconds(self) -> float:
        return self.ticks / TICKS

    def __str__(self) -> str:
        sign, rest = "-" if self.ticks < 0 else "", abs(self.ticks)
        whole, fraction = divmod(rest, TICKS)
        days, whole = divmod(whole, 86400)
        clock = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
        return f"{sign}{f'{days}.' if days else ''}{clock}{f'.{fraction:07}' if fraction else ''}"


@dataclass(frozen=True, slots=True, order=True)
class DateTime:
    """``ticks`` since 1970. Local time is UTC, too. ``offset``: whether it is a DateTimeOffset."""

    ticks: int
    is_utc: bool = False
    offset: bool = False

    @property
    def when(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.ticks // 10)

    def format(self, pattern: str) -> str:
        """Format by a standard letter or a custom pattern."""
        pattern = _STANDARD.get(pattern.lower() if pattern in ("O", "o") else pattern, pattern)
        return _DATE_PART.sub(self._part, pattern)

    def _part(self, match: re.Match[str]) -> str:
        when, text = self.when, match[0]
        if match[1] is not None or match[2]:
            return match[2] or match[1]
        if text[0] == "f":
            return f"{self.ticks % TICKS:07}"[: len(text)]
        hour = when.hour % 12 or 12
        numbers = {"M": when.month, "d": when.day, "H": when.hour, "h": hour, "m": when.minute, "s": when.second}
        words = {"dddd": "%A", "ddd": "%a", "MMMM": "%B", "MMM": "%b", "tt": "%p", "yyyy": "%Y"}
        if text in words:
            return when.strftime(words[text])
        if text in ("K", "zzz"):
            return "Z" if self.is_utc and text == "K" and not self.offset else "+00:00"
        return f"{numbers[text[0]]:0{len(text)}}"

    def __str__(self) -> str:
        return self.format("MM/dd/yyyy HH:mm:ss zzz" if self.offset else "MM/dd/yyyy HH:mm:ss")


def to_text(value: Value) -> str:
    """A value as text in a string."""
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, list):
        return " ".join(to_text(item) for item in value)
    if isinstance(value, NetObject):
        return value.text or value.type
    if isinstance(value, dict):
        return "System.Collections.Hashtable"
    return "" if value is None else str(value)


def to_bool(value: Value) -> bool:
    """Truth of a value: an array of one item has the truth of the item."""
    if isinstance(value, list):
        return len(value) > 1 or (len(value) == 1 and to_bool(value[0]))
    if isinstance(value, None | bool | int | float | str):
        return bool(value)
    return True


def to_number(value: Value) -> int | float:
    """A value as a number. Raises ScriptError."""
    if isinstance(value, bool) or value is None:
        return int(bool(value))
    if isinstance(value, int | float):
        return value
    text = to_text(value).strip()
    try:
        return (
            int(text, 16)
            if text[:2].lower() == "0x"
            else float(text)
            if not text.lstrip("-").isdecimal()
            else int(text)
        )
    except ValueError as error:
        raise ScriptError(
            f'Cannot convert value "{text}" to type "System.Int32". Error: "Input string was not in a correct format."',
            "InvalidCastFromStringToInteger",
            "InvalidArgument: (:) [], RuntimeException",
        ) from error


def to_items(value: Value) -> list[Value]:
    """The items that a pipeline gets of a value."""
    return value if isinstance(value, list) else [] if value is None else [value]


def from_items(items: list[Value]) -> Value:
    """The value of a pipeline: nothing, one item, or an array."""
    return None if not items else items[0] if len(items) == 1 else items


def plain(value: Value) -> Value:
    """A value for JSON as ConvertTo-Json of 5.1 has it: times are milliseconds since 1970."""
    if isinstance(value, NetObject):
        return value.text or {name: plain(item) for name, item in value.properties.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {to_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, DateTime):
        return f"/Date({value.ticks // 10_000})/"
    return value if isinstance(value, None | bool | int | float | str) else to_text(value)


def to_json(value: Value, *, compress: bool) -> str:
    """JSON with the escapes of 5.1 for characters of HTML."""
    text = json.dumps(plain(value), separators=(",", ":") if compress else (",", ":  "), indent=None if compress else 4)
    return re.sub("[<>&']", lambda match: f"\\u{ord(match[0]):04x}", text)

"""Properties and methods of values that are not objects: texts, times, arrays, tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from chaos.lab.winshell.pwsh.values import (
    TICKS,
    DateTime,
    NetObject,
    ScriptError,
    TimeSpan,
    Value,
    to_items,
    to_number,
    to_text,
)

_DATE_PARTS = ("year", "month", "day", "hour", "minute", "second")
_SPAN_UNITS = {"totalmilliseconds": 0.001, "totalseconds": 1.0, "totalminutes": 60.0, "totalhours": 3600.0}
_SPAN_UNITS["totaldays"] = 86400.0
_FILE_TIME_EPOCH = 116_444_736_000_000_000  # 1601 to 1970
_DAY_ONE = 621_355_968_000_000_000  # of .NET: 0001 to 1970


def get_property(value: Value, name: str) -> Value:
    """A property, None if there is none; of an array the property of every item."""
    lower = name.lower()
    if (lower in ("length", "count") and isinstance(value, list | dict)) or (lower, type(value)) == ("length", str):
        return len(value)
    for kind, read in _READERS.items():
        if isinstance(value, kind):
            return read(value, lower)
    return 1 if lower == "count" and value is not None else None


def _object_property(value: NetObject, name: str) -> Value:
    key = value.key(name)
    return None if key is None else value.properties[key]


def _item_properties(value: list[Value], name: str) -> Value:
    return [found for item in value if (found := get_property(item, name)) is not None] or None


def _table_entry(value: dict[Value, Value], name: str) -> Value:
    return next((item for key, item in value.items() if to_text(key).lower() == name), None)


def _span_property(value: TimeSpan, name: str) -> Value:
    if name == "ticks":
        return value.ticks
    return value.ticks / TICKS / _SPAN_UNITS[name] if name in _SPAN_UNITS else None


def _date_property(value: DateTime, name: str) -> Value:
    if name in _DATE_PARTS:
        return getattr(value.when, name)
    if name == "ticks":
        return value.ticks + _DAY_ONE
    if name in ("utcdatetime", "localdatetime", "datetime") and value.offset:
        return DateTime(value.ticks, is_utc=name == "utcdatetime")
    return {"millisecond": value.ticks % TICKS // 10_000, "kind": "Utc" if value.is_utc else "Local"}.get(name)


_READERS: dict[type, Callable[..., Value]] = {
    NetObject: _object_property,
    list: _item_properties,
    dict: _table_entry,
    DateTime: _date_property,
    TimeSpan: _span_property,
}


def set_property(value: Value, name: str, new: Value) -> None:
    """Write a property of an object or an entry of a table. Raises ScriptError."""
    if isinstance(value, dict):
        value[name] = new
    elif isinstance(value, NetObject) and (key := value.key(name)) is not None:
        value.properties[key] = new
    else:
        text = f"The property '{name}' cannot be found on this object. Verify that the property exists and can be set."
        raise ScriptError(text, "PropertyNotFound", "InvalidOperation: (:) [], RuntimeException")


async def call_method(value: Value, name: str, arguments: list[Value]) -> Value:
    """Call a method. Raises ScriptError."""
    if value is None:
        text = "You cannot call a method on a null-valued expression."
        raise ScriptError(text, "InvokeMethodOnNull", "InvalidOperation: (:) [], RuntimeException")
    method = _find(value, name.lower())
    if method is None:
        kind = value.type if isinstance(value, NetObject) else f"System.{type(value).__name__.capitalize()}"
        raise no_method(kind, name)
    try:
        result = method(*arguments)
        return await result if inspect.isawaitable(result) else result
    except TypeError as error:
        text = f'Cannot find an overload for "{name}" and the argument count: "{len(arguments)}".'
        raise ScriptError(text, "MethodCountCouldNotFindBest", "NotSpecified: (:) [], MethodException") from error


def no_method(kind: str, name: str) -> ScriptError:
    """The error for a method that a type lacks."""
    text = f"Method invocation failed because [{kind}] does not contain a method named '{name}'."
    return ScriptError(text, "MethodNotFound", f"InvalidOperation: ({name}:String) [], RuntimeException")


def _find(value: Value, name: str) -> Callable[..., Value] | None:
    if isinstance(value, NetObject):
        found = next((method for key, method in value.methods.items() if key.lower() == name), None)
        return (lambda: to_text(value)) if found is None and name == "tostring" else found
    if isinstance(value, DateTime):
        return _date_method(value, name)
    if isinstance(value, str):
        return _text_methods(value).get(name)
    if name == "tostring":
        return lambda pattern="": f"{int(to_number(value)):{pattern.lower()}}" if pattern else to_text(value)
    return (lambda item: item in value) if isinstance(value, list) and name == "contains" else None


def _date_method(value: DateTime, name: str) -> Callable[..., Value] | None:
    def add(unit: float) -> Callable[[Value], DateTime]:
        return lambda n: DateTime(value.ticks + round(to_number(n) * unit * TICKS), value.is_utc, value.offset)

    methods: dict[str, Callable[..., Value]] = {
        "touniversaltime": lambda: DateTime(value.ticks, is_utc=True, offset=value.offset),
        "tolocaltime": lambda: DateTime(value.ticks, offset=value.offset),
        "tostring": lambda pattern="": value.format(pattern) if pattern else str(value),
        "tofiletimeutc": lambda: value.ticks + _FILE_TIME_EPOCH,
        "tofiletime": lambda: value.ticks + _FILE_TIME_EPOCH,
        "addmilliseconds": add(0.001),
        "addseconds": add(1.0),
        "addminutes": add(60.0),
        "addhours": add(3600.0),
        "adddays": add(86400.0),
    }
    if value.offset:
        methods["tounixtimemilliseconds"] = lambda: value.ticks // 10_000
        methods["tounixtimeseconds"] = lambda: value.ticks // TICKS
    return methods.get(name)


def _text_methods(text: str) -> dict[str, Callable[..., Value]]:
    return {
        "trim": lambda characters="": text.strip(characters or None),
        "trimstart": lambda characters="": text.lstrip(characters or None),
        "trimend": lambda characters="": text.rstrip(characters or None),
        "toupper": text.upper,
        "tolower": text.lower,
        "toupperinvariant": text.upper,
        "tolowerinvariant": text.lower,
        "tostring": lambda: text,
        "contains": lambda part: to_text(part) in text,
        "startswith": lambda part: text.startswith(to_text(part)),
        "endswith": lambda part: text.endswith(to_text(part)),
        "replace": lambda old, new: text.replace(to_text(old), to_text(new)),
        "split": lambda separator: text.split(to_text(separator)),
        "substring": lambda start, length=None: text[int(start) :][: None if length is None else int(length)],
        "indexof": lambda part: text.find(to_text(part)),
    }


def get_item(value: Value, key: Value) -> Value:
    """``value[key]``: None beyond the end."""
    if isinstance(value, dict):
        return get_property(value, to_text(key))
    items = value if isinstance(value, str) else to_items(value)
    index = int(to_number(key))
    return items[index] if -len(items) <= index < len(items) else None

"""Operators on values. Comparisons of texts ignore case; with an array on the left they filter it."""

from __future__ import annotations

import re
from collections.abc import Callable

from chaos.lab.winshell.pwsh.values import DateTime, ScriptError, TimeSpan, Value, to_bool, to_items, to_number, to_text

_FORMAT_ITEM = re.compile(r"\{(\d+)(?:,(-?\d+))?(?::([A-Za-z])(\d*))?\}|(\{\{)|(\}\})")


def apply(operator: str, left: Value, right: Value) -> Value:
    """Apply a binary operator, without ``and`` and ``or``, which evaluate the right side later. Raises ScriptError."""
    word = operator[1:] if operator[:1] in "ci" and operator[1:] in _COMPARISONS else operator
    exact = operator[:1] == "c" and word != operator
    if word in ("eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch"):
        if isinstance(left, list):
            return [item for item in left if _COMPARISONS[word](item, right, exact)]
        return _COMPARISONS[word](left, right, exact)
    if word in ("contains", "notcontains", "in", "notin"):
        items, item = (left, right) if "contains" in word else (right, left)
        found = any(_equal(other, item, exact) for other in to_items(items))
        return found is not word.startswith("not")
    handler = _OTHERS.get(word)
    if handler is None:
        raise ScriptError(f"The operator '-{operator}' is not simulated.", "NotSimulated", ends=True)
    return handler(left, right)


def _folded(value: Value, exact: bool) -> str:
    return to_text(value) if exact else to_text(value).lower()


def _equal(left: Value, right: Value, exact: bool) -> bool:
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or (isinstance(left, int | float) and not isinstance(right, bool)):
        return to_bool(right) == left if isinstance(left, bool) else bool(to_number(right) == left)
    if isinstance(left, DateTime | TimeSpan) and isinstance(right, DateTime | TimeSpan):
        return left.ticks == right.ticks
    return _folded(left, exact) == _folded(right, exact)


def _compare(left: Value, right: Value, exact: bool) -> int:
    if isinstance(left, DateTime | TimeSpan) and isinstance(right, DateTime | TimeSpan):
        return (left.ticks > right.ticks) - (left.ticks < right.ticks)
    if isinstance(left, str):
        one, other = _folded(left, exact), _folded(right, exact)
        return (one > other) - (one < other)
    first, second = to_number(left), to_number(right)
    return (first > second) - (first < second)


def _like(left: Value, right: Value, exact: bool) -> bool:
    pattern = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in to_text(right))
    return re.fullmatch(pattern, to_text(left), 0 if exact else re.IGNORECASE) is not None


def _match(left: Value, right: Value, exact: bool) -> bool:
    return re.search(to_text(right), to_text(left), 0 if exact else re.IGNORECASE) is not None


_COMPARISONS: dict[str, Callable[[Value, Value, bool], bool]] = {
    "eq": _equal,
    "ne": lambda left, right, exact: not _equal(left, right, exact),
    "gt": lambda left, right, exact: _compare(left, right, exact) > 0,
    "ge": lambda left, right, exact: _compare(left, right, exact) >= 0,
    "lt": lambda left, right, exact: _compare(left, right, exact) < 0,
    "le": lambda left, right, exact: _compare(left, right, exact) <= 0,
    "like": _like,
    "notlike": lambda left, right, exact: not _like(left, right, exact),
    "match": _match,
    "notmatch": lambda left, right, exact: not _match(left, right, exact),
}


def _add(left: Value, right: Value) -> Value:
    if isinstance(left, list):
        return [*left, *to_items(right)]
    if isinstance(left, str):
        return left + to_text(right)
    if isinstance(left, DateTime) and isinstance(right, TimeSpan):
        return DateTime(left.ticks + right.ticks, left.is_utc, left.offset)
    if isinstance(left, TimeSpan) and isinstance(right, TimeSpan):
        return TimeSpan(left.ticks + right.ticks)
    return to_number(left) + to_number(right)


def _subtract(left: Value, right: Value) -> Value:
    if isinstance(left, DateTime) and isinstance(right, TimeSpan):
        return DateTime(left.ticks - right.ticks, left.is_utc, left.offset)
    if isinstance(left, DateTime | TimeSpan) and isinstance(right, DateTime | TimeSpan):
        return TimeSpan(left.ticks - right.ticks)
    return to_number(left) - to_number(right)


def _divide(left: Value, right: Value) -> Value:
    divisor = to_number(right)
    if not divisor:
        raise ScriptError("Attempted to divide by zero.", "RuntimeException", "NotSpecified: (:) [], RuntimeException")
    quotient = to_number(left) / divisor
    return int(quotient) if quotient == int(quotient) else quotient


def _multiply(left: Value, right: Value) -> Value:
    return left * int(to_number(right)) if isinstance(left, str | list) else to_number(left) * to_number(right)


def _format(left: Value, right: Value) -> str:
    """``'{0:x} {1}' -f a, b``."""
    items = to_items(right) if isinstance(right, list) else [right]

    def item(match: re.Match[str]) -> str:
        if match[5] or match[6]:
            return "{" if match[5] else "}"
        value, kind, digits = items[int(match[1])], match[3] or "", match[4] or ""
        if kind in ("x", "X", "d", "D"):
            text = f"{int(to_number(value)):0{digits or 1}{kind if kind in 'xX' else 'd'}}"
        elif kind in ("f", "F", "n", "N"):
            text = f"{to_number(value):{',' if kind in 'nN' else ''}.{digits or 2}f}"
        else:
            text = value.format(kind) if kind and isinstance(value, DateTime) else to_text(value)
        width = int(match[2] or 0)
        return text.ljust(-width) if width < 0 else text.rjust(width)

    return _FORMAT_ITEM.sub(item, to_text(left))


def _replace(left: Value, right: Value) -> str:
    pattern, new = [*to_items(right), ""][:2]
    return re.sub(to_text(pattern), re.sub(r"\$(\d)", r"\\\1", to_text(new)), to_text(left), flags=re.IGNORECASE)


_OTHERS: dict[str, Callable[[Value, Value], Value]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": lambda left, right: to_number(left) % to_number(right),
    "..": lambda left, right: list(range(int(to_number(left)), int(to_number(right)) + 1)),
    "f": _format,
    "join": lambda left, right: to_text(right).join(to_text(item) for item in to_items(left)),
    "split": lambda left, right: re.split(to_text(right), to_text(left)),
    "replace": _replace,
}

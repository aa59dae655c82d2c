"""Plain scalars of YAML by the core schema of YAML 1.2: on, off, yes and no are text."""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_CONSTANTS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL_OR_HEX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_OLD_OCTAL = re.compile(r"0[0-7]+", re.ASCII)
_MAX_DIGITS = 300  # far beyond any sane number, and below Python's limit for int()


def resolve(text: str, *, old_octal: bool = False) -> Scalar:
    """The value of a plain scalar. ``old_octal``: 0644 is 420, as kubectl (YAML 1.1) reads a manifest.

    Raises ValueError for a number with too many digits.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    numeric = _INT.fullmatch(text) or _OCTAL_OR_HEX.fullmatch(text) or _FLOAT.fullmatch(text)
    if not numeric:
        return text
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits is too long; quote it if it is text")
    if old_octal and _OLD_OCTAL.fullmatch(text):
        return int(text, 8)
    if _INT.fullmatch(text):
        return int(text)
    return int(text, 0) if _OCTAL_OR_HEX.fullmatch(text) else float(text)

"""Minor versions of Kubernetes, and ranges of them as ``>=v1.32, <v1.36``."""

from __future__ import annotations

import operator
import re
from typing import Annotated

from pydantic import AfterValidator

_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_BOUND = re.compile(r"(>=|<=|==|>|<|=)\s*v?(\d{1,3})\.(\d{1,3})", re.ASCII)
_OPERATORS = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq, "==": operator.eq,
}  # fmt: skip


def parse_minor(text: str) -> tuple[int, int] | None:
    """Major and minor version of ``v1.33.2`` or ``v1.33.2-gke.100``; None for any other text."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


def in_range(version: tuple[int, int], text: str) -> bool:
    """Whether the minor version is within all bounds of ``text``. Raises ValueError."""
    return all(_OPERATORS[symbol](version, bound) for symbol, bound in _bounds(text))


def _bounds(text: str) -> list[tuple[str, tuple[int, int]]]:
    bounds = []
    for part in text.split(","):
        match = _BOUND.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is no range of versions; write it like '>=v1.32' or '>=v1.32, <v1.36'")
        bounds.append((match[1], (int(match[2]), int(match[3]))))
    return bounds


def _check(text: str) -> str:
    _bounds(text)
    return text


VersionRange = Annotated[str, AfterValidator(_check)]

"""Durations, bounds of temporal operators, and requirements on facts.

Kubernetes writes ``90s``, ``1m30s``, ``1.5h``, ``250ms``, systemd ``1h 2min 3.456789s``. A bound joins durations and
facts by ``+`` and ``-``: ``kubelet.shutdownGracePeriod + 10s`` is one, and so is ``toleration(unreachable) + 1m``. A
requirement is ``>0`` or ``>= 30s``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)
_LIMIT = 366 * 86400.0
# systemd.time(7); a month is 30.44 days and a year 365.25, as in src/basic/time-util.h.
_SYSTEMD_UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "month": 2629800.0,
    "y": 31557600.0,
}
_SYSTEMD_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min|h|d|w|month|y)", re.ASCII)
# Facts with one value per run; "kubelet." facts come from the configz of the node of the expectation.
FACTS: dict[str, str] = {
    "kubelet.shutdownGracePeriod": "kubelet configz: time for all pods to terminate in a graceful shutdown",
    "kubelet.shutdownGracePeriodCriticalPods": "kubelet configz: the part of it for critical pods",
    "kubelet.featureGates.GracefulNodeShutdown": "kubelet configz: 1 unless the feature gate is turned off",
    "kubelet.featureGates.WindowsGracefulNodeShutdown": "kubelet configz: 1 if the feature gate is turned on",
    "kubelet.nodeLeaseDurationSeconds": "kubelet configz: how long a Lease is valid",
    "kubelet.nodeStatusUpdateFrequency": "kubelet configz: how often the node's status is computed",
    "kubelet.nodeStatusReportFrequency": "kubelet configz: how often an unchanged status is sent",
    "controller.nodeMonitorPeriod": "controller manager: interval between two checks of all nodes",
    "controller.nodeMonitorGracePeriod": "controller manager: silence after which a node is Unknown",
    "apiServer.defaultNotReadyTolerationSeconds": "API server: default toleration of not-ready",
    "apiServer.defaultUnreachableTolerationSeconds": "API server: default toleration of unreachable",
}
# Facts with one value per pod.
POD_FACTS: dict[str, str] = {
    "pod.terminationGracePeriodSeconds": "the grace period of the pod",
    "toleration(not-ready)": "tolerationSeconds of node.kubernetes.io/not-ready:NoExecute",
    "toleration(unreachable)": "tolerationSeconds of node.kubernetes.io/unreachable:NoExecute",
}
# The same as patterns of a JSON schema.
DURATION = r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d))+"
_TERM = rf"\s*(?:{'|'.join(re.escape(name) for name in (*FACTS, *POD_FACTS))}|{DURATION})\s*"
BOUND = rf"{_TERM}(?:[+-]{_TERM})*".replace(r"\-", "-")
_TOKEN = re.compile(r"\s*(?:([+-])|([A-Za-z][\w.]*(?:\([\w./-]*\))?)|(\d[\w.]*))")
Lookup = Callable[[str], float | None]
_OPERATORS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_REQUIREMENT = re.compile(r"\s*(>=|<=|==|!=|>|<|=)?\s*(\S+)\s*")


def parse_duration(text: str) -> float:
    """Seconds in ``text``. Raises ValueError with the accepted format."""
    parts = _PART.findall(text)
    if not parts or "".join(n + u for n, u in parts) != text:
        raise ValueError(f"invalid duration {text!r}; write it like 90s, 5m or 1m30s")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LIMIT:
        raise ValueError(f"{text!r} is longer than a year")
    return float(seconds)


def format_duration(seconds: float) -> str:
    """The shortest text for a duration in milliseconds precision, with a sign if negative."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    millis = round(seconds * 1000)
    if millis < 60_000:
        return f"{millis / 1000:g}s"
    hours, rest = divmod(millis, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
    return text + (f"{rest / 1000:g}s" if rest else "")


def timestamp(t: float) -> str:
    """Timestamp as in Kubernetes objects: RFC 3339, whole seconds, UTC. ``t``: seconds since the epoch."""
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timespan(text: str) -> float | None:
    """Seconds; None for ``infinity``, an empty text and any other text."""
    total = 0.0
    for word in text.split():
        part = _SYSTEMD_PART.fullmatch(word)
        if part is None:
            return None
        total += float(part[1]) * _SYSTEMD_UNITS[part[2]]
    return total if text.strip() else None


@dataclass(frozen=True, slots=True)
class Bound:
    """A sum of terms: (sign, fact name or "", seconds)."""

    text: str
    terms: tuple[tuple[int, str, float], ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for _, name, _ in self.terms if name)

    @property
    def per_pod(self) -> bool:
        """Whether the bound differs from pod to pod."""
        return bool(self.names & POD_FACTS.keys())

    @property
    def has_durations(self) -> bool:
        """Whether a duration is added, so that :meth:`scaled` has an effect."""
        return any(sign > 0 and seconds > 0 for sign, name, seconds in self.terms if not name)

    def scaled(self, factor: float) -> Bound:
        """The bound with the durations that it adds times ``factor``; facts are Kubernetes' own times and stay."""
        return Bound(
            self.text,
            tuple((sign, name, seconds * factor if sign > 0 else seconds) for sign, name, seconds in self.terms),
        )

    def seconds(self, lookup: Lookup) -> float | None:
        """The bound in seconds, None if one of its facts is unknown."""
        total = 0.0
        for sign, name, constant in self.terms:
            value = lookup(name) if name else constant
            if value is None:
                return None
            total += sign * value
        return total


def parse_bound(text: str) -> Bound:
    """Parse ``text``. Raises ValueError for bad syntax or an unknown fact, with a suggestion."""
    terms: list[tuple[int, str, float]] = []
    sign, position, expect_term = 1, 0, True
    stripped = text.strip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if not match or bool(match[1]) == expect_term:
            raise ValueError(f"invalid bound {text!r}; write it like 30s or kubelet.shutdownGracePeriod + 10s")
        position = match.end()
        expect_term = bool(match[1])
        if match[1]:
            sign = 1 if match[1] == "+" else -1
        elif match[2]:
            terms.append((sign, known_fact(match[2]), 0.0))
        else:
            terms.append((sign, "", parse_duration(match[3])))
    if expect_term:
        raise ValueError(f"invalid bound {text!r}; write it like 30s or kubelet.shutdownGracePeriod + 10s")
    return Bound(text, tuple(terms))


def known_fact(name: str) -> str:
    """``name``, if it is a fact. Raises ValueError with the nearest name otherwise."""
    known = [*FACTS, *POD_FACTS]
    if name in known:
        return name
    nearest = get_close_matches(name, known, 1, 0.5)
    raise ValueError(f"unknown fact {name!r}" + (f"; did you mean {nearest[0]!r}?" if nearest else ""))


def parse_requirement(text: str) -> tuple[str, float]:
    """Operator and number (durations in seconds) of ``">0"`` or ``">= 30s"``. Raises ValueError."""
    match = _REQUIREMENT.fullmatch(text)
    if not match:
        raise ValueError(f"invalid requirement {text!r}; write it like '>0' or '>= 30s'")
    return match[1] or "=", seconds(match[2])


def seconds(value: Any) -> float:
    """A number, or the seconds of a duration. Raises ValueError."""
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else parse_duration(text)


def satisfies(value: float, text: str) -> bool:
    """Whether ``value`` meets the requirement. Raises ValueError if the requirement is invalid."""
    symbol, number = parse_requirement(text)
    return bool(_OPERATORS[symbol](value, number))

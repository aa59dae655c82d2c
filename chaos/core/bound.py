"""Bounds of temporal operators: durations and facts joined by ``+`` and ``-``.

``kubelet.shutdownGracePeriod + 10s`` is a bound; so is ``toleration(unreachable) + 1m``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from chaos.core.duration import parse_duration

# Facts with one value per run; "kubelet." facts come from the configz of the node of the expectation.
FACTS: dict[str, str] = {
    "kubelet.shutdownGracePeriod": "kubelet configz: time for all pods to terminate in a graceful shutdown",
    "kubelet.shutdownGracePeriodCriticalPods": "kubelet configz: the part of it for critical pods",
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
_TOKEN = re.compile(r"\s*(?:([+-])|([A-Za-z][\w.]*(?:\([\w./-]*\))?)|(\d[\w.]*))")
Lookup = Callable[[str], float | None]


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

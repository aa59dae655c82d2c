"""Limits that an expectation sets to measured values, for reports to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ValueLimit:
    """A number with which an assertion compares what a probe, a query or a metric measures.

    ``operator`` is as the parameters have it, also where ``never``, ``series: none`` or an abort condition denies it.
    """

    source: str  # probe, query or metric
    name: str  # of the probe or the query in the experiment, or of the metric
    measure: str  # value, or increase since judging starts; of a probe: latency, or the time that it fails in total
    operator: str  # at-most or at-least
    value: float  # a latency and a time: in seconds
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)  # only series of the query that have them

"""Gauges for Prometheus, in its text format and in OpenMetrics, and alerting rules of a Prometheus.

Of gauges, both formats have the same text; OpenMetrics adds a last line.
https://prometheus.io/docs/instrumenting/exposition_formats/ and https://github.com/prometheus/OpenMetrics
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from chaos.core.text import escape_control

END = "# EOF\n"  # of OpenMetrics


class Sample(Struct, frozen=True):
    """A value with its labels."""

    value: float
    labels: dict[str, str] = {}


class Metric(Struct, frozen=True):
    """A gauge. ``help``: one sentence."""

    name: str
    help: str
    samples: tuple[Sample, ...]

    def with_labels(self, labels: Mapping[str, str]) -> Metric:
        """A copy whose samples have these labels, too."""
        return replace(self, samples=tuple(Sample(each.value, {**each.labels, **labels}) for each in self.samples))


def exposition(metrics: Iterable[Metric]) -> str:
    """The text format of Prometheus; metrics without samples are left out."""
    return "".join(f"{line}\n" for metric in metrics if metric.samples for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {_visible(metric.help)}"
    yield f"# TYPE {metric.name} gauge"
    for sample in metric.samples:
        labels = ",".join(f'{name}="{_escape(value)}"' for name, value in sorted(sample.labels.items()))
        yield f"{metric.name}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}"


def _escape(text: str) -> str:
    return _visible(text).replace('"', '\\"')


def _visible(text: str) -> str:
    """On one line; a help text must not have escapes other than of backslashes."""
    plain = "".join(c if c.isprintable() else " " for c in escape_control(text))
    return plain.replace("\\", "\\\\")


def _number(value: float) -> str:
    return repr(float(value)).replace("inf", "Inf").replace("nan", "NaN")


class AlertingRule(Struct, frozen=True):
    """An alerting rule. ``labels`` are those that it adds to each of its alerts, with ``alertname``.

    ``error``: why its last evaluation failed, "" if it did not. ``firing``: the labels of each alert that fires.
    """

    name: str
    labels: dict[str, str]
    error: str = ""
    firing: tuple[dict[str, str], ...] = ()

    def may_match(self, labels: dict[str, str]) -> bool:
        """Whether an alert of this rule may have these labels: no label that the rule sets contradicts."""
        return all(self.labels.get(name, value) == value for name, value in labels.items())

    def firing_with(self, labels: dict[str, str]) -> tuple[dict[str, str], ...]:
        """The labels of firing alerts that have all of ``labels``."""
        return tuple(alert for alert in self.firing if labels.items() <= alert.items())

"""Alerting rules of a Prometheus."""

from __future__ import annotations

from msgspec import Struct


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

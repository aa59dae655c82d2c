"""Alerting rules of a Prometheus, with the alerts that fire.

Rules (``GET /api/v1/rules``), and not ``/api/v1/alerts``: a server without rules, or whose rules fail, has no alert,
either. Format: https://prometheus.io/docs/prometheus/latest/querying/api/#rules
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.metrics import AlertingRule

_FIRING, _HEALTHY, _ALERTING = "firing", "ok", "alerting"


class _Alert(Struct):
    labels: dict[str, str]
    state: str


class _Rule(Struct, rename="camel"):
    name: str
    type: str = _ALERTING
    labels: dict[str, str] = {}
    health: str = "unknown"
    last_error: str = ""
    alerts: list[_Alert] = []


class _Group(Struct):
    rules: list[_Rule]


class _Data(Struct):
    groups: list[_Group]


class _Answer(Struct):
    status: str
    data: _Data = field(default_factory=lambda: _Data([]))


_DECODER = msgspec.json.Decoder(_Answer)


def decode_rules(body: bytes) -> list[AlertingRule]:
    """The alerting rules in an answer. Raises ValueError for anything else."""
    try:
        answer = _DECODER.decode(body)
    except DECODE_ERRORS as error:
        raise ValueError(f"no rules of Prometheus: {error}") from error
    if answer.status != "success":
        raise ValueError(f"no rules of Prometheus: status {answer.status!r}")
    rules = [rule for group in answer.data.groups for rule in group.rules]
    return [_rule(rule) for rule in rules if rule.type == _ALERTING]


def _rule(rule: _Rule) -> AlertingRule:
    error = "" if rule.health == _HEALTHY else rule.last_error or f"its health is {rule.health}"
    firing = tuple(alert.labels for alert in rule.alerts if alert.state == _FIRING)
    return AlertingRule(rule.name, {**rule.labels, "alertname": rule.name}, error, firing)

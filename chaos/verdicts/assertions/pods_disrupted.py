"""Assertion ``pods-disrupted``, an alias of ``pods``."""

from __future__ import annotations

from chaos.verdicts.assertions._pods import PodsAlias

ASSERTION = PodsAlias(
    "pods-disrupted",
    "pods have the condition DisruptionTarget, with any reason",
    {"each": {"disruption": "any"}},
    "{assert: pods-disrupted, with: {node: victim, except: [static, finished]}, after: power-off, within: 40s}",
)

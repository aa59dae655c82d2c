"""Were pods disrupted?"""

from __future__ import annotations

from chaos.assertions._pods import PodsAlias

ASSERTION = PodsAlias(
    "pods-disrupted",
    "pods have the condition DisruptionTarget, for whatever reason",
    {"each": {"disruption": "any"}},
    "{assert: pods-disrupted, with: {node: victim, except: [static, finished]}, after: power-off, within: 40s}",
)

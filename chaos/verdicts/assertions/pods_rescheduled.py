"""Assertion ``pods-rescheduled``, an alias of ``pods``."""

from __future__ import annotations

from chaos.verdicts.assertions._pods import PodsAlias

ASSERTION = PodsAlias(
    "pods-rescheduled",
    "each pod was replaced by a Ready pod of the same controller on another node",
    {"each": {"replaced": {"node": "other"}}},
    "{assert: pods-rescheduled, with: {node: victim, except: [daemonset, static]}, after: power-off, within: 2m}",
)

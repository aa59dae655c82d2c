"""Assertion ``pods-stuck``, an alias of ``pods``."""

from __future__ import annotations

from chaos.verdicts.assertions._pods import PodsAlias

ASSERTION = PodsAlias(
    "pods-stuck",
    "pods are being deleted, but are not removed",
    {"each": {"deleting": True, "gone": False}},
    "{assert: pods-stuck, with: {node: victim, except: [daemonset, static]}, after: power-cut + 6m, always: {for: 1m}}",
)

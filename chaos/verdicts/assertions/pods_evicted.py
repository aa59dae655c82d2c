"""Assertion ``pods-evicted``, an alias of ``pods``."""

from __future__ import annotations

from chaos.verdicts.assertions._pods import PodsAlias

ASSERTION = PodsAlias(
    "pods-evicted",
    "pods were evicted through the eviction API",
    {"each": {"disruption": "EvictionByEvictionAPI", "deleting": True}},
    "{assert: pods-evicted, with: {node: victim, except: [daemonset, static]}, after: drain, within: 1m}",
)

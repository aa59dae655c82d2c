"""Assertion ``pods-rejected``, an alias of ``pods``."""

from __future__ import annotations

from chaos.verdicts.assertions._pods import PodsAlias

ASSERTION = PodsAlias(
    "pods-rejected",
    "the kubelet rejected pods because its node is shutting down",
    {"count": {"phase": "Failed", "reason": "NodeShutdown", "least": 1}},
    "{assert: pods-rejected, with: {node: victim}, after: power-off, within: 30s}",
)

"""Assertion ``pods``."""

from __future__ import annotations

from chaos.verdicts.assertions._pods import Pods

ASSERTION = Pods()

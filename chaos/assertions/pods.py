"""Assertion ``pods``."""

from __future__ import annotations

from chaos.assertions._pods import Pods

ASSERTION = Pods()

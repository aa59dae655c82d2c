"""Metrics of the controller-manager."""

from __future__ import annotations

from chaos.preflight.check import SourceCheck


class ControllerManager(SourceCheck):
    """Each replica is scraped once."""

    name = "controller-manager"
    summary = "each controller-manager of the inventory serves its metrics, if the experiment uses them"
    is_compatibility_check = True


CHECK = ControllerManager()

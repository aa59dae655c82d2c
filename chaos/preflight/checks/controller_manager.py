"""The controller-manager whose metrics experiments ask for."""

from __future__ import annotations

from chaos.preflight.check import SourceCheck


class ControllerManager(SourceCheck):
    """Each replica is read once."""

    name = "controller-manager"
    summary = "each controller-manager of the inventory tells its metrics, where the experiment asks for them"
    is_compatibility_check = True


CHECK = ControllerManager()

"""The Prometheus that experiments ask."""

from __future__ import annotations

from chaos.preflight.check import SourceCheck


class Prometheus(SourceCheck):
    """Each query is asked once."""

    name = "prometheus"
    summary = "the inventory's Prometheus answers the experiment's queries"


CHECK = Prometheus()

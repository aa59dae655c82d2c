"""Queries of experiments to Prometheus."""

from __future__ import annotations

from chaos.preflight.check import SourceCheck


class Prometheus(SourceCheck):
    """Each query is sent once."""

    name = "prometheus"
    summary = "the inventory's Prometheus answers the experiment's queries"


CHECK = Prometheus()

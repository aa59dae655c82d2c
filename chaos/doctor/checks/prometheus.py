"""The Prometheus that experiments ask."""

from __future__ import annotations

from chaos.doctor.check import Answers


class Prometheus(Answers):
    """Each query is asked once."""

    name = "prometheus"
    summary = "the inventory's Prometheus answers the experiment's queries"


CHECK = Prometheus()

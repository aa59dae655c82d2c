"""A suggestion for a small cluster: a database on one node, and what two rehearsals of that lost."""

from __future__ import annotations

from chaos.rehearsal.forecast.sample import Outage, Sample
from chaos.rehearsal.suggest.document import Group, Suggestion
from chaos.rehearsal.suggest.events import Event, Victim
from chaos.rehearsal.suggest.experiments import experiments_of
from chaos.rehearsal.suggest.findings import weaknesses_of
from chaos.rehearsal.suggest.losses import Rehearsed, losses_of
from chaos.rehearsal.suggest.model import Model
from chaos.rehearsal.suggest.risks import check, headline, risks_of, with_change
from tests.kit.small_contents import node, small, workload

DB = ("StatefulSet", "shop/db")


def model() -> Model:
    """A StatefulSet of one pod on w1, and another node."""
    return Model(small(workload("StatefulSet", "db", ("w1",)), nodes=[node("w1", "a"), node("w2", "b")]))


def sample(seed: int, seconds: float, *, lasts: bool = False, unevicted: bool = False) -> Sample:
    """A run on w1 in which the database is gone for ``seconds``."""
    outages = (Outage(*DB, 1, seconds, seconds, lasts),) if seconds else ()
    return Sample(seed, "w1", None, (), outages, (), "", None, (DB,) if unevicted else ())


def suggestion() -> Suggestion:
    """A drain of w1 costs 2 or 4 s, a power cut the time until it is back; a second replica helps."""
    found, victim, rehearsed = model(), Victim("w1", ("w1",), ("w1",)), Rehearsed()
    for seed, seconds in ((1, 2.0), (2, 4.0)):
        rehearsed.add(Event.DRAIN, victim, sample(seed, seconds))
        rehearsed.add(Event.POWER_CUT, victim, sample(seed, 780.0, lasts=True))
    weaknesses = weaknesses_of(found)
    risk, *_ = risks_of(found, rehearsed, weaknesses)
    helped = Rehearsed()
    helped.add(Event.POWER_CUT, victim, sample(1, 0.0))
    risks = (with_change(risk, "shop/db has 2 replicas", losses_of(found.workloads[0], found, helped)),)
    checked = check(weaknesses, risks)
    return Suggestion(
        *("s.gz", "d", "v1.36.2", "", (1, 2), headline(risks, checked), risks, checked),
        (Group("w1", ("w1",)), Group("w2", ("w2",))),
        ("a",),
        12,
        tuple(experiments_of(risks, found)),
        ("control-plane nodes",),
    )

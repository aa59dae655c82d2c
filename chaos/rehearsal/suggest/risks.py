"""Risks: the workloads that lose something in rehearsals, the worst first, and which weaknesses these confirm."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from chaos.rehearsal.suggest.events import Event
from chaos.rehearsal.suggest.losses import Loss, Rehearsed, losses_of
from chaos.rehearsal.suggest.model import Model, Workload
from chaos.rehearsal.suggest.weakness import Weakness, WeaknessKind

_CLOSE = 0.9  # share of the longest loss from which on losses count as the same


class Risk(Struct, frozen=True):
    """A workload with its worst loss, and the losses of all events. ``helps``: what would help.

    ``change``: a ``--what-if`` of it, "" without one, and ``with_change`` the loss that a rehearsal then shows.
    """

    workload: str
    worst: Loss
    losses: tuple[Loss, ...]
    because: tuple[str, ...]
    helps: str
    change: str = ""
    changed: str = ""
    with_change: Loss | None = None

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        loss = self.worst
        share = f" in {loss.runs} rehearsals" if loss.runs > 1 else ""
        return f"{self.workload}, {loss.event.words} of {loss.victim}: {loss.what}{share}."

    def loss(self, event: Event) -> Loss | None:
        """What an event on the worst victim costs; None if nothing."""
        return _matching(self.losses, event, self.worst.victim)

    @property
    def help(self) -> str:
        """What would help, and what a rehearsal showed of it."""
        if self.with_change is None:
            return self.helps
        after = self.with_change
        lost = after.what if after.is_one else "0 s"
        return f"{self.helps} (rehearsed: {self.changed}: {lost})"


def _matching(losses: Sequence[Loss], event: Event, victim: str) -> Loss | None:
    return next((loss for loss in losses if (loss.event, loss.victim) == (event, victim)), None)


class Status(StrEnum):
    """What rehearsals say of a weakness."""

    CONFIRMED = "confirmed"
    NOT_SEEN = "not seen"
    NOT_REHEARSED = "not rehearsed"


class Checked(Struct, frozen=True):
    """A weakness, and what rehearsals say of it."""

    weakness: Weakness
    status: Status


# What no rehearsal shows, as nodes fail one after the other, or as the lab does not have it.
UNREHEARSED = {
    WeaknessKind.BUDGET_IDLE: "budgets that select the wrong pods",
    WeaknessKind.BUDGET_OVERLAP: "pods of several budgets",
    WeaknessKind.NO_BUDGET: "drains of several nodes at once",
    WeaknessKind.BUDGET_ABOVE_AUTOSCALER: "autoscalers of pods",
    WeaknessKind.AUTOSCALER_ONE: "autoscalers of pods",
    WeaknessKind.AUTOSCALER_FIXED: "autoscalers of pods",
    WeaknessKind.AUTOSCALER_FULL: "autoscalers of pods",
    WeaknessKind.SHUTDOWN_OFF: "requests that are cut off when a container is killed",
    WeaknessKind.CRITICAL_SECONDS: "requests that are cut off when a container is killed",
    WeaknessKind.GRACE_CUT: "requests that are cut off when a container is killed",
    WeaknessKind.DAEMON_MISSING: "effects on the pods of nodes without a DaemonSet",
    WeaknessKind.INTERFERES: "controllers that are not part of Kubernetes",
}


def risks_of(model: Model, rehearsed: Rehearsed, weaknesses: Sequence[Weakness]) -> list[Risk]:
    """Workloads that lose something, the one that is gone for the longest first."""
    found = [risk for workload in model.workloads if (risk := _risk(workload, model, rehearsed, weaknesses))]
    return sorted(found, key=_rank)


def _rank(risk: Risk) -> tuple[float, int, float, int, str]:
    gone, unevicted, waited = risk.worst.gravity
    return -gone, -unevicted, -waited, list(Event).index(risk.worst.event), risk.workload


def _risk(workload: Workload, model: Model, rehearsed: Rehearsed, weaknesses: Sequence[Weakness]) -> Risk | None:
    losses = [loss for loss in losses_of(workload, model, rehearsed) if loss.is_one]
    if not losses:
        return None
    own = [each for each in weaknesses if workload.key in each.objects and each.kind not in UNREHEARSED]
    worst = _worst(losses)
    helping = next((each for each in own if each.what_if), own[0] if own else None)
    helps = helping.helps if helping else _default_help(worst)
    ordered = sorted(losses, key=lambda loss: (list(Event).index(loss.event), loss.victim))
    because = tuple(each.sentence for each in own)
    return Risk(workload.key, worst, tuple(ordered), because, helps, helping.what_if if helping else "")


def _worst(losses: Sequence[Loss]) -> Loss:
    """The gravest; of those that are about as grave, the gentlest event, and a node before a zone."""
    longest, order = max(loss.seconds for loss in losses), list(Event)
    if longest:
        same = [loss for loss in losses if loss.seconds >= longest * _CLOSE]
    else:
        blocked, share = max((loss.unevicted, loss.waited / loss.observed) for loss in losses)
        same = [x for x in losses if x.unevicted == blocked and x.waited / x.observed >= share * _CLOSE]
    return min(same, key=lambda each: (order.index(each.event), each.is_of_zone, -each.mean, each.victim))


def _default_help(loss: Loss) -> str:
    if loss.waiting:
        return "add a node, lower requests, or allow more nodes"
    if loss.is_of_zone:
        return "spread its pods over zones"
    return "add replicas on other nodes"


def with_change(risk: Risk, changed: str, losses: Sequence[Loss]) -> Risk:
    """The risk with what a rehearsal of its event shows after a change; ``changed``: that in words."""
    after = _matching(losses, risk.worst.event, risk.worst.victim)
    return replace(risk, changed=changed, with_change=after) if after else risk


def check(weaknesses: Sequence[Weakness], risks: Sequence[Risk]) -> tuple[Checked, ...]:
    """Each weakness with what the rehearsals say of it."""
    at_risk = {risk.workload for risk in risks}
    return tuple(Checked(each, _status(each, at_risk)) for each in weaknesses)


def _status(weakness: Weakness, at_risk: set[str]) -> Status:
    if weakness.kind in UNREHEARSED:
        return Status.NOT_REHEARSED
    return Status.CONFIRMED if at_risk & {weakness.subject, *weakness.objects} else Status.NOT_SEEN


def headline(risks: Sequence[Risk], checked: Sequence[Checked]) -> str:
    """The most important thing, in one sentence."""
    if risks:
        return risks[0].sentence
    if checked:
        return f"{checked[0].weakness.sentence} No rehearsal shows a workload without a serving pod."
    return "No weakness was found, and every workload kept a serving pod in every rehearsal."

"""A node cut off from the control plane. So far judged from recordings only; it cannot be injected yet."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.model.action import Action, Finding, Memory, Proof, Shown, StepRun, Target, Undo, UndoKind
from chaos.model.command import Command
from chaos.model.errors import Unsupported
from chaos.model.evidence import last_before, not_shown, readings_after
from chaos.model.experiment import DurationText, Model
from chaos.model.timeline import Timeline


class Params(Model):
    """What is cut."""

    from_: Literal["control-plane", "nodes", "everything-but-us", "cidr", "port"] = Field("control-plane", alias="from")
    families: list[Literal["ipv4", "ipv6"]] | None = None
    direction: Literal["both", "in", "out"] | None = None
    traffic: Literal["host", "pods", "all"] | None = None
    duration: DurationText | None = None


def _api_unreachable(timeline: Timeline, step: StepRun) -> Finding:
    """New connections to the API fail on every address family, throughout."""
    readings = [r for r in readings_after(timeline, step, "api-reachable") if isinstance(r.value, dict)]
    for reading in readings:
        open_families = sorted(family for family, reachable in reading.value.items() if reachable)
        if open_families:
            because = (
                f"{step.node} still reached the API over {' and '.join(open_families)}"
                f" {reading.t - step.begin:.1f}s after the cut"
            )
            return Finding(Shown.DISPROVEN, because, (reading.seq,))
    before = last_before(timeline, step, "api-reachable")
    families = {f for f, open_ in before.value.items() if open_} if before and isinstance(before.value, dict) else set()
    for reading in readings:
        closed = {family for family, reachable in reading.value.items() if reachable is False}
        if closed and closed >= families:
            return Finding(Shown.PROVEN, f"{step.node} reached the API over no address family", (reading.seq,))
    untried = " and ".join(sorted(families)) if readings else ""
    return not_shown(f"nobody tried on {step.node} whether the API is reachable{untried and f' over {untried}'}")


class Partition(Action):
    """Proven on the node itself: a node that is dual-stack lives on over the other family."""

    name = "partition"
    summary = "cut a node off (so far only judged from recordings)"
    example = "{name: cut, action: partition, target: victim, with: {from: control-plane}}"
    params = Params
    undo_kind = UndoKind.RESTORES
    cuts_line = True
    proofs = (Proof("api-unreachable", _api_unreachable),)
    probes = ("api-reachable",)

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - refused whatever it is
        raise Unsupported(
            "partition cannot be injected yet; recordings of one can be judged",
            hint="use nodefall judge",
        )

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - prepare refused
        return ()

    def undo(self, memory: Memory) -> Undo:  # noqa: ARG002 - prepare refused
        return Undo()


ACTION = Partition()

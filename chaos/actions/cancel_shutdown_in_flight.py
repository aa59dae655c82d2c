"""A shutdown cancelled after it has begun, while delay locks hold it up: systemd 257 and later can, the kubelet can't.

systemd then says no PrepareForShutdown false, so a kubelet that heard "true" stays "node is shutting down" until it is
restarted (facts 18, recording 27). Before 257 ``shutdown -c`` answers 0 and the machine goes down all the same.
"""

from __future__ import annotations

from typing import Any

from chaos.actions._service import kubelet_told
from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import Action, Check, Finding, Memory, Proof, StepRun, Target, Undo, UndoKind
from chaos.model.command import Command, HostCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import booted, fact_is
from chaos.model.experiment import Model
from chaos.model.timeline import Timeline

_CAN = 257  # the first systemd that cancels a delayed shutdown


_NOT_PREPARING = fact_is("preparing-for-shutdown", lambda v: v == NOT_PREPARING, "logind is not shutting down any more")


def _cancelled(timeline: Timeline, step: StepRun) -> Finding:
    """What logind says of itself, in the same boot."""
    return booted(timeline, step, "it went down all the same") or _NOT_PREPARING.check(timeline, step)


class Params(Model):
    """None."""


class CancelShutdownInFlight(Action):
    """``shutdown -c`` while logind waits for locks. Undo restarts a kubelet that was never told."""

    name = "cancel-shutdown-in-flight"
    summary = "cancel a shutdown that has begun and waits for locks (systemd 257 and later)"
    example = "{name: cancel, action: cancel-shutdown-in-flight, target: victim, after: power-off + 4s}"
    params = Params
    undo_kind = UndoKind.RESTORES
    gentle = True
    asks_logind = True
    proofs = (Proof("not-shutting-down", _cancelled),)
    probes = ("preparing-for-shutdown", "machine", "inhibitors", "kubelet-inhibitor", "pid1-start")
    facts = ("systemd-version",)

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        version = target.need("systemd-version", "only some systemds can cancel a shutdown that has begun")
        if version < _CAN:
            why = f"{target.node} has systemd {version}, which answers 0 and goes down all the same"
            raise Unsupported(why, hint=f"it takes systemd {_CAN}; cancel-shutdown shows what {version} does")
        unit = target.need("kubelet-unit", "the kubelet must be restarted afterwards")
        return {"unit": unit, "lock": bool(target.facts.get("kubelet-inhibitor"))}

    def before(self, memory: Memory) -> tuple[Check, ...]:  # noqa: ARG002 - the same on every node
        return (Check("preparing-for-shutdown", "b true"),)

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("shutdown", "-c")),)

    def undo(self, memory: Memory) -> Undo:
        return kubelet_told(memory)


ACTION = CancelShutdownInFlight()

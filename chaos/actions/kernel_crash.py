"""A kernel panic: nothing runs any more, and the power stays on."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import NOT_GOING_DOWN, POWER_ON
from chaos.facts.login1 import NOT_PREPARING
from chaos.model.action import Action, Check, Memory, Target, Undo, UndoKind, UndoStep
from chaos.model.command import Command, HostCommand, PowerCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import BOOT_IDENTITY
from chaos.model.experiment import Model

_BOOT = 180.0  # seconds, beyond kernel.panic, in which a machine that boots by itself answers again


class Params(Model):
    """None."""


class KernelCrash(Action):
    """SysRq ``c``. Refused where the kernel is others' too; kdump, where it is set up, takes its time."""

    name = "kernel-crash"
    summary = "crash the kernel (SysRq c)"
    example = "{name: crash, action: kernel-crash, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    cuts_line = True
    takes_down = True
    proofs = (BOOT_IDENTITY,)
    probes = ("pid1-start", "boot-id", "machine")
    facts = ("shared-kernel", "panic-timeout")

    def prepare(self, target: Target, params: Any) -> Memory:  # noqa: ARG002 - it has none
        if target.need("shared-kernel", "only a kernel of its own may be crashed"):
            raise Unsupported(
                f"{target.node} is a container: its kernel is others' too", hint="use a machine of its own"
            )
        timeout = target.need("panic-timeout", "it decides whether the machine boots again by itself")
        resets = bool(target.power) and {"on", "off"} <= target.power_can
        if not timeout and not resets:
            raise Unsupported(
                f"{target.node} would not boot again after a panic (kernel.panic is 0), no power control can reset it",
                hint="give its host a power control in the inventory, or set kernel.panic there",
            )
        return {"power": resets, "patience": max(timeout, 0) + _BOOT if timeout else 0.0}

    def inject(self, memory: Memory) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("sh", "-c", "echo c > /proc/sysrq-trigger"), ends_session=True, timeout=10.0),)

    def undo(self, memory: Memory) -> Undo:
        """A machine that hangs is switched off once, then on."""
        answers = Check("preparing-for-shutdown", NOT_PREPARING)
        off = UndoStep(PowerCommand("off"), unless=answers, patience=memory["patience"], sends=1)
        return Undo((off, POWER_ON) if memory["power"] else (), NOT_GOING_DOWN)


ACTION = KernelCrash()

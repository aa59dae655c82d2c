"""A kernel panic: nothing runs any more, and the power stays on."""

from __future__ import annotations

from typing import Any

from chaos.actions._machine import (
    KUBELET_REPORTING_FACTS,
    NO_SHUTDOWN_IN_PROGRESS,
    POWER_ON,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
)
from chaos.model.action import Action, Target, Undo, UndoKind, UndoState, UndoStep
from chaos.model.command import Command, HostCommand, PowerCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import BOOT_IDENTITY
from chaos.model.experiment import Model

_BOOT_SECONDS = 120.0  # seconds, beyond kernel.panic, in which a machine that boots by itself answers again
_MAX_PANIC_SECONDS = 60  # seconds of kernel.panic: with the boot after it, as long as a step's proof is awaited


class Params(Model):
    """None."""


class KernelCrash(Action):
    """SysRq ``c``. Refused where the kernel is others' too; kdump, where it is set up, takes its time.

    The machine must boot again by itself (kernel.panic, which the kubelet sets to 10 unless told not to): only the new
    boot shows that the crash was. A power control resets one that hangs all the same.
    """

    name = "kernel-crash"
    summary = "crash the kernel (SysRq c)"
    example = "{name: crash, action: kernel-crash, target: victim}"
    params = Params
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (BOOT_IDENTITY,)
    proof_facts = ("pid1-start", "boot-id", "machine")
    facts = ("shared-kernel", "panic-timeout", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: Any) -> UndoState:  # noqa: ARG002 - it has none
        if target.require_fact("shared-kernel", "only a kernel of its own may be crashed"):
            raise Unsupported(
                f"{target.node} is a container: its kernel is others' too", hint="use a machine of its own"
            )
        timeout = target.require_fact("panic-timeout", "it decides whether the machine boots again by itself")
        if not timeout or timeout > _MAX_PANIC_SECONDS:
            when = f"boot again only {timeout} s after a panic" if timeout else "not boot again after a panic"
            raise Unsupported(
                f"{target.node} would {when} (kernel.panic is {timeout})",
                hint=f"`sysctl kernel.panic=10` there (at most {_MAX_PANIC_SECONDS}; below 0 is at once), or use power-cut",
            )
        resets = bool(target.power) and {"on", "off"} <= target.power_capabilities
        return {
            "power": resets,
            "patience": max(timeout, 0) + _BOOT_SECONDS,
            "reports": kubelet_reporting_facts(target),
        }

    def inject(self, memory: UndoState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("sh", "-c", "echo c > /proc/sysrq-trigger"), ends_session=True, timeout=10.0),)

    def undo(self, memory: UndoState) -> Undo:
        """A machine that hangs is switched off once, then on."""
        off = UndoStep(
            PowerCommand("off"), unless=NO_SHUTDOWN_IN_PROGRESS, grace_seconds=memory["patience"], max_attempts=1
        )
        return Undo((off, POWER_ON) if memory["power"] else (), kubelet_reporting_checks(memory["reports"]))


ACTION = KernelCrash()

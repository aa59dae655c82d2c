"""A kernel panic: every process stops, and the power stays on."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import Action, Target, Undo, UndoKind, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import Command, HostCommand, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    NO_SHUTDOWN_IN_PROGRESS,
    POWER_ON,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
)
from chaos.faults.actions._params import NoParams

_BOOT_SECONDS = 120.0  # beyond kernel.panic, in which a machine that boots by itself answers again
_MAX_PANIC_SECONDS = 60  # of kernel.panic: with the boot after it, the longest wait for a step's proof


class CrashState(Struct, frozen=True):
    """Whether the power control can reset the machine, and after how long; facts to be restored."""

    can_reset: bool
    grace_seconds: float
    reporting_facts: list[str]


class KernelCrash(Action[NoParams, CrashState]):
    """SysRq ``c``. Refused on a shared kernel; kdump, where it is configured, delays the boot.

    The machine must boot again by itself (kernel.panic, which the kubelet sets to 10 by default): only the new boot
    proves the crash. Undo resets a machine that hangs through its power control.
    """

    name = "kernel-crash"
    summary = "crash the kernel (SysRq c)"
    example = "{name: crash, action: kernel-crash, target: victim}"
    params = NoParams
    state = CrashState
    undo_kind = UndoKind.RESTORES
    may_disconnect = True
    takes_down = True
    proofs = (BOOT_IDENTITY,)
    proof_facts = ("pid1-start", "boot-id", PseudoFact.MACHINE)
    facts = ("shared-kernel", "panic-timeout", *KUBELET_REPORTING_FACTS)

    def prepare(self, target: Target, params: NoParams) -> CrashState:  # noqa: ARG002 - no parameters
        if target.require_fact("shared-kernel", "a shared kernel must not be crashed"):
            raise Unsupported(
                f"{target.node} is a container: it shares its machine's kernel", hint="use a dedicated machine"
            )
        timeout = target.require_fact("panic-timeout", "it determines whether the machine boots again by itself")
        if not timeout or timeout > _MAX_PANIC_SECONDS:
            when = f"boot again only {timeout} s after a panic" if timeout else "not boot again after a panic"
            raise Unsupported(
                f"{target.node} would {when} (kernel.panic is {timeout})",
                hint=f"run `sysctl kernel.panic=10` there (at most {_MAX_PANIC_SECONDS}), or use power-cut",
            )
        can_reset = bool(target.power) and {"on", "off"} <= target.power_capabilities
        return CrashState(can_reset, max(timeout, 0) + _BOOT_SECONDS, kubelet_reporting_facts(target))

    def inject(self, state: CrashState) -> tuple[Command, ...]:  # noqa: ARG002 - the same on every node
        return (HostCommand(("sh", "-c", "echo c > /proc/sysrq-trigger"), ends_session=True, timeout=10.0),)

    def undo(self, state: CrashState) -> Undo:
        """Power a machine that hangs off once, then on."""
        off = UndoStep(
            PowerCommand(PowerVerb.OFF),
            unless=NO_SHUTDOWN_IN_PROGRESS,
            grace_seconds=state.grace_seconds,
            max_attempts=1,
        )
        return Undo((off, POWER_ON) if state.can_reset else (), kubelet_reporting_checks(state.reporting_facts))


ACTION = KernelCrash()

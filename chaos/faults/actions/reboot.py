"""A machine that goes down and boots by itself: planned, immediately, or by a kernel panic."""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from chaos.core.action import Action, Needs, Program, Target, Undo, UndoKind, UndoStep
from chaos.core.api_fact import PseudoFact
from chaos.core.command import HostCommand, PowerCommand, PowerVerb
from chaos.core.errors import Unsupported
from chaos.core.evidence import BOOT_IDENTITY
from chaos.core.machine_evidence import REBOOTED
from chaos.faults.actions._machine import (
    KUBELET_REPORTING_FACTS,
    NO_SHUTDOWN_IN_PROGRESS,
    POWER_ON,
    RebootState,
    capture_reboot_state,
    kubelet_reporting_checks,
    kubelet_reporting_facts,
    restore_rebooted,
)
from chaos.faults.actions._params import NoParams

_BOOT_SECONDS = 120.0  # beyond kernel.panic, in which a machine that boots by itself answers again
_MAX_PANIC_SECONDS = 60  # of kernel.panic: with the boot after it, the longest wait for a step's proof
_NEEDS = Needs(
    ("shared-kernel", *KUBELET_REPORTING_FACTS), ("pid1-start", "boot-id", "inhibitor-locks", PseudoFact.MACHINE)
)


def _reboot(state: RebootState, *options: str) -> Program:
    command = HostCommand(("systemctl", "reboot", *options), ends_session=True)
    return Program((command,), restore_rebooted(state))


REBOOT = Action(
    name="reboot",
    summary="reboot the machine through logind (graceful if the kubelet holds its lock)",
    description="""
    Runs ``systemctl reboot``. Delay locks are honored, and the machine boots without a power control. The restart
    policy of a container starts it again.
    """,
    example="{name: reboot, action: reboot, target: victim}",
    params=NoParams,
    state=RebootState,
    undo_kind=UndoKind.SELF_RESTORING,
    may_disconnect=True,
    takes_down=True,
    proofs=(REBOOTED,),
    needs=replace(_NEEDS, logind=True),
    prepare=lambda target, _: capture_reboot_state(target),
    program=_reboot,
)
HARD_REBOOT = Action(
    name="hard-reboot",
    summary="reboot the machine at once, without any shutdown",
    description="""
    Runs ``systemctl reboot --force --force``. A reboot that takes less than the node monitor grace period changes no
    condition.
    """,
    example="{name: reboot, action: hard-reboot, target: victim}",
    params=NoParams,
    state=RebootState,
    undo_kind=UndoKind.SELF_RESTORING,
    may_disconnect=True,
    takes_down=True,
    proofs=(REBOOTED,),
    needs=_NEEDS,
    prepare=lambda target, _: capture_reboot_state(target),
    program=lambda state: _reboot(state, "--force", "--force"),
)


class CrashState(Struct, frozen=True):
    """Whether and when the power control resets the machine, and the facts to restore."""

    can_reset: bool
    grace_seconds: float
    reporting_facts: list[str]


def _prepare_crash(target: Target, _: NoParams) -> CrashState:
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


def _crash(state: CrashState) -> Program:
    """Crash the machine. The undo powers a hanging machine off once, then on."""
    off = UndoStep(
        PowerCommand(PowerVerb.OFF),
        unless=NO_SHUTDOWN_IN_PROGRESS,
        grace_seconds=state.grace_seconds,
        max_attempts=1,
    )
    crash = HostCommand(("sh", "-c", "echo c > /proc/sysrq-trigger"), ends_session=True, timeout=10.0)
    steps = (off, POWER_ON) if state.can_reset else ()
    return Program((crash,), Undo(steps, kubelet_reporting_checks(state.reporting_facts)))


KERNEL_CRASH = Action(
    name="kernel-crash",
    summary="crash the kernel (SysRq c)",
    description="""
    Sends SysRq ``c``. The action is refused on a shared kernel. If kdump is configured, it delays the boot.

    The machine must boot again by itself (kernel.panic, which the kubelet sets to 10 by default): only the new boot
    proves the crash. Undo resets a machine that hangs through its power control.
    """,
    example="{name: crash, action: kernel-crash, target: victim}",
    params=NoParams,
    state=CrashState,
    undo_kind=UndoKind.RESTORES,
    may_disconnect=True,
    takes_down=True,
    proofs=(BOOT_IDENTITY,),
    needs=Needs(
        ("shared-kernel", "panic-timeout", *KUBELET_REPORTING_FACTS), ("pid1-start", "boot-id", PseudoFact.MACHINE)
    ),
    prepare=_prepare_crash,
    program=_crash,
)

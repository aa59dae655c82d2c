"""What the outcome of a command means: why it failed, and whether it is known to have done nothing."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.core.command import Command, Delivery, HostCommand, KubeCommand, Outcome, TaintsCommand, is_success, refusal

_SHOWN_OUTPUT = 200  # characters of a failed program's output
_UNIT_NOT_LOADED = 5  # systemctl's exit code (LSB: program is not installed)


def had_no_effect(command: Command, outcome: Outcome) -> bool:
    """True if the outcome excludes any effect: not sent, unit not loaded, refused, or rejected by the API server.

    Any other failure may have had part of its effect.
    """
    if outcome.delivery is Delivery.NOT_SENT:
        return True
    if outcome.delivery is not Delivery.ANSWERED or is_success(command, outcome):
        return False
    if isinstance(command, HostCommand):
        is_unknown_unit = outcome.exit == _UNIT_NOT_LOADED and _is_for_one_unit(command.argv)
        return is_unknown_unit or bool(refusal(command, outcome))
    if isinstance(command, (KubeCommand, TaintsCommand)):
        return 400 <= (outcome.exit or 0) < 500
    return False


def _is_for_one_unit(argv: Sequence[str]) -> bool:
    """True for ``systemctl VERB UNIT``: with several units, some may have been loaded."""
    words = [word for word in argv if not word.startswith("-")]
    return words[0] == "systemctl" and len(words) == 3


def failure_reason(command: Command, outcome: Outcome) -> str:
    """Programs of Windows write their errors to standard output."""
    code = f"exit code {outcome.exit}"
    shown = " ".join(outcome.stdout.split())[:_SHOWN_OUTPUT]
    reason = refusal(command, outcome) or outcome.error or outcome.stderr.strip()
    return reason or (f"{code}: {shown}" if shown else code)

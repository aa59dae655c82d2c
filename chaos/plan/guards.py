"""Guards that no option switches off."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.model.errors import Refused


def never_ourselves(own_machine_id: str, host_machine_id: str, host: str) -> None:
    """Refuse a host that is this machine, by /etc/machine-id; one whose ID is not known is refused too.

    ``own_machine_id`` is "" where this machine has none. Raises Refused.
    """
    own, other = _plain(own_machine_id), _plain(host_machine_id)
    if not other:
        raise Refused(
            f"{host} has no machine ID, so it cannot be told from this machine",
            hint=f"run `systemd-machine-id-setup` on {host}",
        )
    if own == other:
        raise Refused(
            f"{host} is the machine that nodefall runs on (machine ID {other})",
            hint="run nodefall elsewhere, or choose another target; a clone of this machine needs an ID of its own",
        )


def no_timer_left(planted: Sequence[str], host: str) -> None:
    """Refuse a host that still has timers of an earlier run: they would heal what this run breaks. Raises Refused."""
    if planted:
        raise Refused(
            f"{host} still has {', '.join(planted)} of an earlier run, which would end what this one does",
            hint="see nodefall undo --list; a timer that nobody owes elapses by itself",
        )


def _plain(machine_id: str) -> str:
    """Lower case hex; "" for what systemd writes before the first boot."""
    text = machine_id.strip().lower().replace("-", "")
    return "" if text == "uninitialized" else text

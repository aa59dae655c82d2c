"""What a run of the death sweep is hit by at a position of its journal."""

from __future__ import annotations

from dataclasses import dataclass

STOP_SECONDS = 60.0  # twice the duration of the lock
CLOCK_JUMP = 3600.0  # seconds


@dataclass(frozen=True)
class Death:
    """``what`` is done. ``by_parent``: by the process that started the run, which the run waits for.

    ``kills``: the run is killed then. ``needs_replica``: only where its journal is in the cluster. ``steals``: another
    holder has the lock; ``is_noticed``: the run waits until it has noticed that. ``codes``: exit codes that the run may
    end with, if not any. ``clock_jump``: seconds by which the wall clock is set.
    """

    what: str
    by_parent: bool = False
    kills: bool = False
    needs_replica: bool = False
    steals: bool = False
    is_noticed: bool = False
    codes: tuple[int, ...] = ()
    clock_jump: float = 0.0


def _replica(what: str) -> Death:
    return Death(f"the run's ConfigMap {what}, then SIGKILL", by_parent=True, kills=True, needs_replica=True)


def _theft(what: str) -> Death:
    return Death(f"the Lease has another holder, which {what}", True, steals=True, is_noticed=True, codes=(2,))


DEATHS: dict[str, Death] = {
    "SIGKILL": Death("the process ends at once"),
    "SIGTERM": Death("the run is to end, and undoes"),
    "SIGINT": Death("Ctrl-C: the run is to end, and undoes"),
    "full-disk": Death("no file of the run can grow"),
    "lost-network": Death("every connection is reset and no new one is accepted, until the run has ended", True),
    "lost-terminal": Death("the terminal is closed", by_parent=True),
    "journal-edited": _replica("names other nodes and objects"),
    "journal-garbled": _replica("is cut in half"),
    "journal-deleted": _replica("is deleted"),
    "journal-replayed": _replica("has the content of another run's"),
    "lock-stolen": _theft("stops renewing after a while"),
    "lock-stolen-released": _theft("deletes the Lease after a while"),
    "stopped": Death("SIGSTOP, SIGCONT 60 s later", by_parent=True, codes=(0, 1, 2)),
    "stopped-stolen": Death("SIGSTOP; the Lease has another holder; SIGCONT 60 s later", True, steals=True, codes=(2,)),
    "clock-forward": Death("the wall clock is set one hour forward", True, codes=(0,), clock_jump=CLOCK_JUMP),
    "clock-back": Death("the wall clock is set one hour back", True, codes=(0,), clock_jump=-CLOCK_JUMP),
}

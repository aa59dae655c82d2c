"""The lock of a game day: one process works on it, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from chaos.app.cluster_lock import hold_lock
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.errors import Refused
from chaos.core.labels import GAME_DAY_PREFIX
from chaos.core.store.process_lock import exclusive_lock
from chaos.engine.connection import ClusterConnection, cluster_identity


@contextmanager
def hold_day_lock(connection: ClusterConnection, name: str, note: Callable[[str], object]) -> Iterator[ClusterLock]:
    """Hold the lock of the game day for the block. Raises Refused if another process works on it.

    That of a process that has ended is free at once on its machine; elsewhere this waits until its Lease has expired.
    """
    with ExitStack() as stack:
        try:
            machine = stack.enter_context(exclusive_lock(f"{cluster_identity(connection)}-{GAME_DAY_PREFIX}{name}"))
            lease, about = f"{GAME_DAY_PREFIX}{name}", f"game day {name}"
            lock = stack.enter_context(hold_lock(connection, machine, about, note, wait_for_holder=True, name=lease))
        except Refused as error:
            raise Refused(
                f"game day {name} is being run: {error.message}",
                hint="nodefall gameday status shows it, nodefall gameday halt stops it",
            ) from error
        yield lock

"""The lock of a game day, and its state in the cluster: a change is written over the state it was computed from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial

from chaos.app.wiring.lock import hold_lock
from chaos.cluster.gameday_objects import DayRecord, read_day, write_day
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused
from chaos.core.labels import GAME_DAY_PREFIX
from chaos.core.ports import KubeApi
from chaos.core.store.process_lock import exclusive_lock
from chaos.engine.connection import ClusterConnection, cluster_identity, lock_namespace
from chaos.gameday.state import DayState, DayStatus
from chaos.gameday.stored_day import decode, encode
from chaos.gameday.transitions import StateConflict, check_epoch, halt

_TRIES = 20  # of a write while others change the state, too
_RETRY_SECONDS = 2.0
_BY_ANNOTATION = "an annotation of its ConfigMap"
Change = Callable[[DayState | None], DayState]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DayStore:
    """The state of the game day ``name``. ``now``: seconds since the epoch, in cluster time."""

    kube: KubeApi
    namespace: str
    name: str
    now: Callable[[], float]

    def read(self) -> DayState | None:
        """The state, None if there is none. Raises NodefallError."""
        return self._decode(read_day(self.kube, self.namespace, self.name))

    def update(self, change: Change, patience: float = 0.0, gives_up: Callable[[], bool] = lambda: False) -> DayState:
        """Write what ``change`` makes of the present state, and return it. Raises NodefallError.

        ``change`` may be called again, with a newer state, and its result be written twice. ``patience``: wall seconds
        for which an API server that does not answer is asked again, unless ``gives_up``.
        """
        with closing(SystemClock()) as clock:
            deadline = clock.now() + patience
            while True:
                try:
                    return self._update(change)
                except Refused:
                    raise
                except NodefallError as error:
                    if gives_up() or clock.now() + _RETRY_SECONDS > deadline:
                        raise
                    _log.debug("cannot write the state of the game day: %s", error.message)
                clock.sleep(_RETRY_SECONDS)

    def _update(self, change: Change) -> DayState:
        for _ in range(_TRIES):
            record = read_day(self.kube, self.namespace, self.name)
            before = self._decode(record)
            after = change(before)
            is_stored = record is not None and record.halt is None and after == before
            if is_stored or write_day(self.kube, self.namespace, self.name, encode(after), record):
                return after
        raise NodefallError(f"the state of game day {self.name} cannot be written: other processes keep changing it")

    def _decode(self, record: DayRecord | None) -> DayState | None:
        """The state; halted if an annotation of its ConfigMap halts it. The next write stores the halt."""
        if record is None:
            return None
        state = decode(record.text)
        if state.gameday != self.name:
            raise Refused(f"invalid state of a game day: the state of {self.name} belongs to {state.gameday}")
        if record.halt is None or state.status is DayStatus.FINISHED:
            return state
        return halt(state, _BY_ANNOTATION, record.halt, self.now())


def day_store(connection: ClusterConnection, name: str) -> DayStore:
    """The state of that game day on a cluster."""
    return DayStore(connection.kube, lock_namespace(connection), name, partial(day_time, connection))


def day_time(connection: ClusterConnection) -> float:
    """Now, in cluster time. This machine may have been suspended for days, so its clock is read again."""
    cluster = connection.inventory.cluster
    if cluster and cluster.time_source:
        return connection.clock.now()
    with closing(SystemClock()) as clock:
        return clock.now()


def existing(change: Callable[[DayState], DayState], epoch: int | None = None) -> Change:
    """A change of a state that must exist: raises StateConflict if its ConfigMap was deleted.

    ``epoch``: of the process that makes the change; raises StateConflict if another one has taken the day over.
    """

    def apply(state: DayState | None) -> DayState:
        if state is None:
            raise StateConflict(
                "there is no such game day on this cluster", hint="run nodefall gameday status to list all game days"
            )
        if epoch is not None:
            check_epoch(state, epoch)
        return change(state)

    return apply


def unless_finished(change: Callable[[DayState], DayState]) -> Change:
    """A change of a state that must exist, and that stays as it is once the day is finished."""
    return existing(lambda state: state if state.status is DayStatus.FINISHED else change(state))


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

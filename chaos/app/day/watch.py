"""Watches the state of a game day: a halt is noticed within a second, whatever the day is doing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.app.day.stop import DayStop
from chaos.app.day.store import DayStore
from chaos.core.errors import NodefallError, Refused
from chaos.core.threads import ContextThread

_PERIOD = 0.8  # wall seconds between two reads: with the tick of a run, a halt has effect within 2 s
_log = logging.getLogger(__name__)


@contextmanager
def watch_day(store: DayStore, epoch: int, stop: DayStop) -> Iterator[None]:
    """Report to ``stop`` for the block when the day is halted, deleted, damaged or taken over by another process.

    An API server that does not answer is no reason to stop: the locks of run and day see to that.
    """
    ended = threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(_PERIOD) and not stop.loss:
                _inspect(store, epoch, stop)
        except Exception as error:  # noqa: BLE001 - a watch that silently ends would miss a halt
            _log.exception("the watch of the game day crashed")
            stop.on_crash(error)

    thread = ContextThread(watch, "game day")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _inspect(store: DayStore, epoch: int, stop: DayStop) -> None:
    try:
        state = store.read()
    except Refused as error:
        stop.on_loss(error.message)
        return
    except NodefallError as error:
        _log.debug("the state of the game day was not read: %s", error.message)
        return
    if state is None:
        stop.on_loss(f"the state of game day {store.name} was deleted")
    elif state.epoch != epoch:
        stop.on_loss(f"{state.day} of {store.name} was taken over by {state.holder}")
    elif state.halt and not stop.halt:
        stop.on_halt(state.halt)

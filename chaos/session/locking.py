"""The cluster's lock and its debts, for the commands that change a cluster."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chaos.engine.clock import SystemClock
from chaos.engine.ledger import Debt, debts, remove
from chaos.engine.lock import ClusterLock, Identity
from chaos.model.errors import Refused, UsageError
from chaos.model.marks import RUN
from chaos.model.text import on_node
from chaos.session.opening import Opened, login, own_machine_id
from chaos.store.lease import MACHINE


@contextmanager
def holding(opened: Opened, run: str, note: Callable[[str], object], *, patient: bool = False) -> Iterator[ClusterLock]:
    """Hold it, and give it up at the end. Call with this machine's own lock held. Raises Refused.

    ``note`` is told that a dead holder's time must be awaited; it may refuse to.
    """
    clock = SystemClock()
    lock = ClusterLock(opened.kube, namespace(opened), _identity(run), clock.now)
    try:
        lock.acquire(note, patient=patient)
        yield lock
    finally:
        lock.release()
        clock.close()


def namespace(opened: Opened) -> str:
    """Where the lock and the journals of runs are kept."""
    if opened.inventory.cluster is None:
        raise UsageError("the inventory has no cluster")
    return opened.inventory.cluster.namespace


def refuse_debts(opened: Opened) -> list[Debt]:
    """No run begins while another's undo is owed. Those that owe nothing any more. Raises Refused."""
    found = debts(opened.kube, namespace(opened))
    for debt in found:
        if debt.open:
            whose = f" of {debt.debtor.holder}" if debt.debtor.holder else ""
            raise Refused(
                f"run {debt.debtor.run}{whose} still owes {told(debt)}",
                hint=f"nodefall undo {debt.debtor.run}, with --inventory if it ran on another machine",
            )
    return found


def settle_debts(opened: Opened) -> None:
    """With the lock held: remove what is left of runs that owe nothing. Raises Refused."""
    for debt in refuse_debts(opened):
        remove(opened.kube, namespace(opened), debt.debtor.run)


def told(debt: Debt) -> str:
    """What is owed, in words."""
    if debt.damaged:
        return f"nobody knows what, as its journal cannot be read ({debt.damaged})"
    return ", ".join(dict.fromkeys(f"the undo of {on_node(o.step, o.node)}" for o in debt.owed if o.undo.proof))


def _identity(run: str) -> Identity:
    """``MACHINE`` tells who shares this machine's own lock: of them only one lives."""
    machine = own_machine_id()
    place = f"{machine} {os.getuid()} {tempfile.gettempdir()}"
    about = {RUN: run} | ({MACHINE: hashlib.sha256(place.encode()).hexdigest()[:16]} if machine else {})
    return Identity(f"{login()}@{socket.gethostname()}/{os.getpid()}-{secrets.token_hex(4)}", about)

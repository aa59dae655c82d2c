"""Who is at work on a cluster: read from its lock, and asked to stop through it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import click

from chaos.cli.output import say
from chaos.engine.clock import SystemClock
from chaos.engine.ledger import Debt, debts
from chaos.engine.lock import ask_to_stop, read_lock
from chaos.load.inventory import load_inventory
from chaos.model.duration import parse_duration
from chaos.model.errors import Exit, UsageError
from chaos.model.inventory import Inventory
from chaos.model.marks import RUN
from chaos.session.locking import namespace, told
from chaos.session.opening import Opened, inventory_path, open_inventory
from chaos.store.lease import Record

_LOOK = 1.0


def status(inventory: str | None, as_json: bool) -> int:
    """Say it; the exit code."""
    with open_inventory(_real(inventory)) as opened, closing(SystemClock()) as clock:
        return _say(opened, clock, as_json)


def abort(inventory: str | None, reason: str, wait: str, as_json: bool) -> int:
    """Ask, and wait; the exit code. Raises UsageError."""
    try:
        seconds = parse_duration(wait)
    except ValueError as error:
        raise UsageError(f"--wait: {error}") from error
    if not reason.strip():
        raise UsageError("--reason: say why")
    with open_inventory(_real(inventory)) as opened, closing(SystemClock()) as clock:
        record = read_lock(opened.kube, namespace(opened))
        if record and record.holder and record.seems_alive(clock.now()):
            ask_to_stop(opened.kube, namespace(opened), reason)
            say(f"asked {record.holder} to stop", err=True)
            _await_end(opened, clock, record.holder, seconds)
        return _say(opened, clock, as_json)


def _real(inventory: str | None) -> Inventory:
    loaded = load_inventory(inventory_path(inventory))
    if loaded.lab:
        raise UsageError(
            "nobody is at work on a lab that is not up", hint="give the inventory that nodefall lab up prints"
        )
    return loaded


def _await_end(opened: Opened, clock: SystemClock, holder: str, seconds: float) -> None:
    end = clock.now() + seconds
    while clock.now() < end:
        record = read_lock(opened.kube, namespace(opened))
        if record is None or record.holder != holder:
            return
        clock.sleep(_LOOK)


def _say(opened: Opened, clock: SystemClock, as_json: bool) -> int:
    record = read_lock(opened.kube, namespace(opened))
    owed = [debt for debt in debts(opened.kube, namespace(opened)) if debt.open]
    holder = record if record and record.holder else None
    alive = holder is not None and holder.seems_alive(clock.now())
    if as_json:
        click.echo(json.dumps(_document(opened, holder, alive, owed)))
    else:
        say(_holder(holder, alive, clock.now()))
        for debt in owed:
            say(f"run {debt.debtor.run} owes {told(debt)}")
    if alive:
        return int(Exit.INCONCLUSIVE)
    return int(Exit.UNDO_OWED if owed else Exit.HELD)


def _document(opened: Opened, holder: Record | None, alive: bool, owed: list[Debt]) -> dict[str, Any]:
    rows = [
        {"run": debt.debtor.run, "step": o.step, "action": o.action, "node": o.node}
        for debt in owed
        for o in debt.owed
        if o.undo.proof
    ]
    lock = None
    if holder:
        lock = {
            "holder": holder.holder,
            "run": holder.annotations.get(RUN, ""),
            "renewed": holder.renewed,
            "alive": alive,
            "fence": holder.fence,
            "abort": holder.abort,
        }
    unreadable = [debt.name for debt in owed if debt.damaged]
    return {
        "server": opened.kube.server,
        "clusterUID": opened.uid,
        "lock": lock,
        "owed": rows,
        "unreadable": unreadable,
    }


def _holder(record: Record | None, alive: bool, now: float) -> str:
    if record is None:
        return "nobody is at work on this cluster"
    run = record.annotations.get(RUN)
    ago = record.age(now)
    what = "is at work" if alive else "seems to have died"
    asked = f", asked to stop: {record.abort}" if record.abort else ""
    return f"{record.holder} {what}{f': run {run}' if run else ''} (lock renewed {ago:.0f}s ago by its clock{asked})"

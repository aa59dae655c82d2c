"""The state of the days on a cluster: shown, halted, resumed and approved, from any machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from chaos.app.day.document import LoadedGameDay, approvers, cluster_name, load_game_day, new_state
from chaos.app.day.store import DayStore, day_time, existing, unless_finished
from chaos.app.day.waits import names_of_impaired
from chaos.app.undo.pending import describe_pending
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.gameday.plan import render, to_document
from chaos.cli.gameday.run import check_id, day_inventory, who
from chaos.cli.inventory import command_inventory, require_running
from chaos.cli.lazy import seconds_of
from chaos.cli.output import echo, to_json
from chaos.cluster.gameday_objects import list_days
from chaos.cluster.journal_mirror import pending_runs
from chaos.cluster.lease import read_lock
from chaos.core.clock import SystemClock
from chaos.core.errors import Exit, NodefallError, Refused, UsageError
from chaos.core.labels import GAME_DAY_PREFIX
from chaos.documents.document import expect_kind, read_document
from chaos.documents.wording import did_you_mean
from chaos.documents.yaml_tree import ScalarNode, child_of
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.gameday.state import Approval, DayState, DayStatus, RunStatus, describe, exit_code
from chaos.gameday.stored_day import approve_day
from chaos.gameday.transitions import end, halt, resume

_POLL = 1.0  # wall seconds


@dataclass(frozen=True, slots=True)
class HaltOptions:
    """``wait``: how long to wait for the undo of the run, as a duration; ``for_good``: nothing of the day begins."""

    reason: str
    by: str
    wait: str
    for_good: bool = False


def status(gameday: str | None, inventory: str | None, as_json: bool) -> int:
    """Print the days on the cluster, or one of them; the exit code."""
    with connect_cluster(require_running(command_inventory(inventory))) as connection:
        documents, codes = [], [Exit.HELD]
        for store, state in _days(connection, gameday):
            documents.append(to_document(state) | {"holder_is_active": _is_active(store)})
            codes.append(exit_code(state))
            if not as_json:
                echo(*render(state), f"{_describe_holder(store, state)}", "")
        pending = [run for run in pending_runs(connection.kube, lock_namespace(connection)) if run.has_pending]
        if as_json:
            click.echo(to_json({"days": documents, "pending_undo": [run.identity.run for run in pending]}))
        elif not documents:
            echo("no game day on this cluster")
        for run in pending if not as_json else ():
            echo(f"run {run.identity.run} has a pending undo: {describe_pending(run)}")
        order = [Exit.HELD, Exit.REFUSED, Exit.INCONCLUSIVE, Exit.VIOLATED]
        return int(Exit.UNDO_PENDING if pending else max(codes, key=order.index))


def halt_days(gameday: str | None, inventory: str | None, options: HaltOptions) -> int:
    """Halt one day, or all on the cluster, and wait for the undo of what runs; the exit code."""
    seconds = seconds_of("--wait", options.wait)
    with connect_cluster(require_running(command_inventory(inventory))) as connection:
        stores = [store for store, state in _days(connection, gameday) if state.status is not DayStatus.FINISHED]
        if not stores:
            echo("no game day to halt", err=True)
        failed = {store.name: why for store in stores if (why := _halt(store, options))}  # all before any is waited for
        halted = [store for store in stores if store.name not in failed]
        is_running = [store for store in halted if not _wait_for_end(store, seconds)]
        pending = any(run.has_pending for run in pending_runs(connection.kube, lock_namespace(connection)))
    if failed:
        raise NodefallError("; ".join(failed.values()), hint="run the same command again")
    if is_running:
        return int(Exit.INCONCLUSIVE)
    return int(Exit.UNDO_PENDING if pending else Exit.HELD)


def _halt(store: DayStore, options: HaltOptions) -> str:
    """Halt or end one day; why that failed, or ""."""
    act = end if options.for_good else halt
    change = partial(act, by=options.by, reason=options.reason, now=store.now())
    try:
        state = store.update(unless_finished(change))
    except NodefallError as error:
        return f"game day {store.name} was not halted: {error.message}"
    echo(describe(state), err=True)
    return ""


def resume_day(gameday: str | None, inventory: str | None, by: str, reason: str) -> int:
    """Let a halted day continue; the exit code."""
    with connect_cluster(require_running(command_inventory(inventory))) as connection:
        halted = [(store, state) for store, state in _days(connection, gameday) if state.status is DayStatus.HALTED]
        if len(halted) != 1:
            names = ", ".join(store.name for store, _ in halted) or "none"
            raise UsageError(f"which game day? halted on this cluster: {names}", hint="name the one to resume")
        store = halted[0][0]
        state = store.update(existing(lambda day: resume(day, by, reason, store.now())))
        echo(f"{describe(state)}; continue it with nodefall gameday run", err=True)
    return int(Exit.HELD)


def day_name(text: str) -> str:
    """A game day's name, or that of the one in a file. Raises BadInput."""
    path = Path(text)
    if not path.is_file():
        return text
    root = read_document(path)
    expect_kind(path, root, "GameDay")
    metadata = child_of(root, "metadata")
    name = child_of(metadata.node, "name") if metadata else None
    if name is None or not isinstance(name.node, ScalarNode):
        raise UsageError(f"{path}: metadata.name is missing", hint=f"nodefall validate {path}")
    return str(name.node.value)


def _days(connection: ClusterConnection, gameday: str | None) -> Iterator[tuple[DayStore, DayState]]:
    """The days on the cluster, or the one that is named. An unreadable one is only reported. Raises UsageError."""
    namespace, name = lock_namespace(connection), day_name(gameday) if gameday else ""
    records = list_days(connection.kube, namespace, name)
    if name and not records:
        known = ", ".join(record.name for record in list_days(connection.kube, namespace)) or "none"
        raise UsageError(f"no game day {name!r} on this cluster", hint=f"there are: {known}")
    for record in records:
        store = DayStore(connection.kube, namespace, record.name, partial(day_time, connection))
        try:
            state = store.read()
        except NodefallError as error:
            if name:
                raise
            echo(f"error: {record.name}: {error.message}", err=True)
            continue
        if state:
            yield store, state


def _wait_for_end(store: DayStore, seconds: float) -> bool:
    """Wait until no run of the day is running; whether that is so."""
    with closing(SystemClock()) as clock:
        deadline = clock.now() + seconds
        while (state := store.read()) and any(run.status is RunStatus.RUNNING for run in state.runs):
            if not _is_active(store):
                echo(f"{_describe_holder(store, state)}; nodefall gameday run finishes its undo", err=True)
                return False
            if clock.now() >= deadline:
                return False
            clock.sleep(_POLL)
    return True


def _is_active(store: DayStore) -> bool:
    """Whether a process works on the day, by its lock."""
    record = read_lock(store.kube, store.namespace, f"{GAME_DAY_PREFIX}{store.name}")
    with closing(SystemClock()) as clock:
        return bool(record and record.holder and record.is_recent(clock.now()))


def _describe_holder(store: DayStore, state: DayState) -> str:
    if not state.holder:
        return "it has not begun"
    is_active = _is_active(store)
    return f"{state.holder} works on it" if is_active else f"no process works on it, the last was {state.holder}"


@dataclass(frozen=True, slots=True)
class ApproveOptions:
    """The options of the command. ``entry``: "" for the whole day; ``plan_hash``: that was read, "" for any."""

    gameday: Path
    inventory: str | None
    entry: str
    by: str
    plan_hash: str
    id: str


def approve(options: ApproveOptions) -> int:
    """Store the approval; the exit code. Raises Refused if the plan is another one."""
    check_id(options.id)
    day = load_game_day(options.gameday)
    if options.plan_hash and not day.hash.startswith(options.plan_hash):
        raise Refused(
            f"not approved: the plan of {options.gameday} is {day.hash[:12]}, not {options.plan_hash[:12]}",
            hint="read nodefall gameday plan again, and approve the hash that it prints",
        )
    _refuse_unlisted(day, options)
    path = day_inventory(day, options.inventory)
    with connect_cluster(require_running(command_inventory(str(path)))) as connection:
        name, cluster = day.document.metadata.name, cluster_name(day, path)
        store = DayStore(connection.kube, lock_namespace(connection), name, partial(day_time, connection))
        fresh = new_state(day, cluster, options.id, None, store.now(), names_of_impaired(connection.kube))
        approval = Approval(options.by, store.now(), day.hash, options.entry, who())
        state = store.update(lambda stored: approve_day(stored, fresh, approval, is_named=bool(options.id)))
    what = f"entry {options.entry}" if options.entry else f"day {state.day}"
    echo(f"{what} of {name} is approved by {options.by}: plan {day.hash}", err=True)
    return int(Exit.HELD)


def _refuse_unlisted(day: LoadedGameDay, options: ApproveOptions) -> None:
    """Raises Refused for an approval that no gate asks for: it would seem to count."""
    names = [item.name for item in day.entries]
    if options.entry and options.entry not in names:
        hint = did_you_mean(options.entry, names)
        raise Refused(f"not approved: {options.gameday} has no entry {options.entry!r}", hint=hint)
    what = f"entry {options.entry}" if options.entry else "the day"
    persons = approvers(day, options.entry)
    if options.by not in persons:
        hint = f"approve as one of them with --by: {', '.join(persons)}" if persons else "no gate asks for an approval"
        raise Refused(f"not approved: no gate of {what} asks for {options.by}", hint=hint)

"""``gameday approve``: the approval of a plan, stored on the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.app.day.document import LoadedGameDay, approvers, cluster_name, load_game_day, new_state
from chaos.app.day.store import day_store
from chaos.app.day.waits import names_of_impaired
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.cluster.lock_status import load_cluster_inventory
from chaos.cli.gameday.run_impl import check_id, day_inventory, who
from chaos.cli.output import echo
from chaos.core.errors import Exit, Refused
from chaos.documents.problems import did_you_mean
from chaos.gameday.state import Approval
from chaos.gameday.stored_day import approve_day


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
    with connect_cluster(load_cluster_inventory(str(path))) as connection:
        name, cluster = day.document.metadata.name, cluster_name(day, path)
        store = day_store(connection, name)
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

"""The state of a day before it begins."""

from __future__ import annotations

from datetime import UTC, datetime

from chaos.app.gameday import LoadedGameDay, new_seed
from chaos.core.errors import Refused
from chaos.gameday.state import DayState, runs_on


def new_state(
    day: LoadedGameDay, cluster: str, day_id: str, seed: int | None, now: float, impaired: tuple[str, ...]
) -> DayState:
    """The state of a day of which nothing has begun, without a holder. Raises Refused if it has no entry.

    ``cluster``: its name in the document, or "". ``day_id``: "" for the date in the zone of the window. ``impaired``:
    nodes that are not as they should be now.
    """
    drawn = new_seed() if seed is None else seed
    runs = runs_on(day.document, [entry.name for entry in day.entries], drawn, cluster)
    if not runs:
        raise Refused(f"game day {day.document.metadata.name} has no entry for the cluster {cluster}")
    return DayState(
        day=day_id or datetime.fromtimestamp(now, UTC).astimezone(day.zone).date().isoformat(),
        gameday=day.document.metadata.name,
        plan_hash=day.hash,
        seed=drawn,
        created=now,
        order="by-entry",
        parallel=1,
        holder="",
        epoch=0,
        runs=runs,
        impaired=impaired,
    )

"""Which day a process works on: a new one, one that others have begun, or one that is finished."""

from __future__ import annotations

from msgspec.structs import replace

from chaos.core.errors import Refused
from chaos.gameday.state import Approval, DayState, DayStatus
from chaos.gameday.transitions import approve, take_over


def open_day(stored: DayState | None, fresh: DayState, *, is_named: bool, has_seed: bool) -> DayState:
    """The day to work on, held by the holder of ``fresh``, who has proof that no other process works on it.

    ``fresh``: the day as it would begin now. ``is_named``: its ID was given, so that another one than that of a
    finished day begins a new day. ``has_seed``: its seed was given. A finished day is returned as it is: only reported.
    Raises Refused if the stored day has begun, and is another one.
    """
    if stored is None:
        return take_over(fresh, fresh.holder)
    if stored.status is DayStatus.FINISHED:
        is_new = is_named and fresh.day != stored.day
        return take_over(replace(fresh, epoch=stored.epoch), fresh.holder) if is_new else stored
    if not stored.has_begun:
        day = fresh.day if is_named else stored.day
        same_plan = stored.plan_hash == fresh.plan_hash and not has_seed
        current = stored if same_plan else replace(stored, plan_hash=fresh.plan_hash, seed=fresh.seed, runs=fresh.runs)
        return take_over(replace(current, day=day, impaired=fresh.impaired), fresh.holder)
    _refuse_other(stored, fresh, is_named=is_named, has_seed=has_seed)
    return take_over(stored, fresh.holder)


def approve_day(stored: DayState | None, fresh: DayState, approval: Approval, *, is_named: bool) -> DayState:
    """The day with an approval; one that was not run yet is created, or brought to the plan of ``fresh``.

    Raises Refused for a day that is finished, and for an approval of another plan than that of a day that is run.
    """
    if stored is None:
        return approve(fresh, approval)
    if stored.status is DayStatus.FINISHED:
        if not is_named or fresh.day == stored.day:
            raise Refused(
                f"day {stored.day} of {stored.gameday} is finished", hint="name the next day with --id, and run it so"
            )
        return approve(replace(fresh, epoch=stored.epoch), approval)
    if not stored.holder and stored.plan_hash != fresh.plan_hash:
        return approve(replace(fresh, epoch=stored.epoch, approvals=stored.approvals, halts=stored.halts), approval)
    if is_named and fresh.day != stored.day:
        raise Refused(f"day {stored.day} of {stored.gameday} is not finished", hint=f"omit --id {fresh.day}")
    return approve(stored, approval)


def _refuse_other(stored: DayState, fresh: DayState, *, is_named: bool, has_seed: bool) -> None:
    end = "end it with nodefall gameday halt --end, or go on with it"
    if is_named and stored.day != fresh.day:
        raise Refused(f"day {stored.day} of {stored.gameday} is not finished", hint=f"{end} without --id {fresh.day}")
    if stored.plan_hash != fresh.plan_hash:
        raise Refused(
            f"the plan of {stored.gameday} has changed since day {stored.day} began: it was {stored.plan_hash[:12]}, "
            f"now it is {fresh.plan_hash[:12]}",
            hint=f"{end} with the files that it began with",
        )
    if has_seed and stored.seed != fresh.seed:
        raise Refused(f"day {stored.day} of {stored.gameday} began with seed {stored.seed}", hint="omit --seed")

"""The stored state of a game day: its JSON in a ConfigMap, and which day a process works on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from chaos.core.errors import Refused
from chaos.gameday.document import MAX_RUNS
from chaos.gameday.state import DAY_NAME, Approval, DayRun, DayState, DayStatus, RunStatus
from chaos.gameday.transitions import approve, take_over

VERSION = 1
_RUN_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
MAX_BYTES = 900_000  # a ConfigMap holds 1 MiB, its metadata included
_END_OF_TIME = 221_845_392_000.0  # the year 9000: of datetime, in any zone
_DECODER = msgspec.json.Decoder(DayState, strict=True)


def encode(state: DayState) -> str:
    """The state as JSON. Raises Refused if it is too large for a ConfigMap."""
    data = msgspec.json.encode(state)
    if len(data) > MAX_BYTES:
        raise Refused(
            f"state of {state.day} too large: {len(data)} bytes, the limit is {MAX_BYTES}",
            hint="divide the game day into several",
        )
    return data.decode()


def decode(text: str) -> DayState:
    """The state in ``text``. Raises Refused if it is damaged, contradictory or of another version."""
    if len(text) > MAX_BYTES:
        raise Refused(f"invalid state of a game day: longer than {MAX_BYTES} bytes")
    try:
        state = _DECODER.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:  # also of a wrong type
        raise Refused(f"invalid state of a game day: {error}") from None
    if state.version != VERSION:
        raise Refused(f"unknown state of a game day: version {state.version}", hint="use a newer nodefall")
    if problem := _contradiction(state):
        raise Refused(f"invalid state of a game day: {problem}")
    return state


def _contradiction(state: DayState) -> str:
    """What cannot be, "" if all can. Whoever may write ConfigMaps wrote this: the day and its runs become paths."""
    if not re.fullmatch(DAY_NAME, state.day):
        return f"{state.day!r} is not a valid name of a day"
    for t in _times(msgspec.to_builtins(state)):
        if not 0 <= t < _END_OF_TIME:
            return f"{t:g} is no time"
    if len(state.runs) > MAX_RUNS:
        return f"{len(state.runs)} runs, the limit is {MAX_RUNS}"
    if len({run.key for run in state.runs}) < len(state.runs):
        return "a run is listed twice"
    ids = [run.run for run in state.runs if run.run]
    if len(set(ids)) < len(ids):
        return "two runs have the same ID"
    return next(filter(None, map(_contradiction_of_run, state.runs)), "")


def _times(value: Any) -> Iterator[float]:
    """Every number with a fraction: nothing else of a state has one."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _times(each)


def _contradiction_of_run(run: DayRun) -> str:
    if run.run and not re.fullmatch(_RUN_ID, run.run):
        return f"{run.run!r} is not a run ID"
    has_id = bool(run.run)
    if has_id != (run.status in (RunStatus.RUNNING, RunStatus.DONE)):
        return f"{run.key} is {run.status} {'with' if has_id else 'without'} a run ID"
    if (run.verdict is not None) != (run.status is RunStatus.DONE):
        return f"{run.key} is {run.status} {'with' if run.verdict else 'without'} a verdict"
    if run.status is RunStatus.PENDING and run.may_have_injected:
        return f"{run.key} is pending, but its fault may have been injected"
    return ""


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
            raise Refused(f"day {stored.day} of {stored.gameday} is finished", hint="start a new day with --id NEXT")
        return approve(replace(fresh, epoch=stored.epoch), approval)
    if not stored.holder and stored.plan_hash != fresh.plan_hash:
        return approve(replace(fresh, epoch=stored.epoch, approvals=stored.approvals, halts=stored.halts), approval)
    if is_named and fresh.day != stored.day:
        raise Refused(f"day {stored.day} of {stored.gameday} is not finished", hint=f"omit --id {fresh.day}")
    return approve(stored, approval)


def _refuse_other(stored: DayState, fresh: DayState, *, is_named: bool, has_seed: bool) -> None:
    end = "continue it, or end it with nodefall gameday halt --end"
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

"""The state of a day as JSON, for a ConfigMap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from chaos.core.errors import Refused
from chaos.gameday.document import MAX_RUNS
from chaos.gameday.state import DAY_NAME, DayRun, DayState, RunStatus

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
        return f"{state.day!r} is no name of a day"
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
        return f"{run.run!r} is no ID of a run"
    has_id = bool(run.run)
    if has_id != (run.status in (RunStatus.RUNNING, RunStatus.DONE)):
        return f"{run.key} is {run.status} {'with' if has_id else 'without'} a run ID"
    if (run.verdict is not None) != (run.status is RunStatus.DONE):
        return f"{run.key} is {run.status} {'with' if run.verdict else 'without'} a verdict"
    if run.status is RunStatus.PENDING and run.may_have_injected:
        return f"{run.key} is pending, but its fault may have been injected"
    return ""

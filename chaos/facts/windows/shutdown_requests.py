"""Shutdown that somebody has requested, and that is neither aborted nor over.

Windows has no query for it. Its trace in the System log is User32 1074, without a later 1075 (aborted) or
Kernel-General 12 (started). The record does not show whether the countdown still runs; its texts are translated, its
comment is not.
"""

from __future__ import annotations

from chaos.facts.windows._events import KERNEL_GENERAL, USER32, SystemEvent, parse_events, query_events, query_words
from chaos.model.state_types import Tag
from chaos.model.windows import powershell, system_program

_REQUESTED, _ABORTED, _STARTED = (USER32, 1074), (USER32, 1075), (KERNEL_GENERAL, 12)
_EVENTS = (_REQUESTED, _ABORTED, _STARTED)
_PROCESS, _COMMENT, _USER = "param1", "param6", "param7"
NEWEST_REQUEST = query_events(_EVENTS, 1)


def pending_request(stdout: str, exit_code: int) -> SystemEvent | None:
    """The request, by the output of NEWEST_REQUEST; None if there is none. Raises ValueError."""
    newest = next(iter(parse_events(stdout, exit_code)), None)
    return newest if newest is not None and newest.key == _REQUESTED else None


def describe_request(request: SystemEvent) -> str:
    r"""As ``shutdown.exe for WIN1\Administrator: nodefall r1-off``."""
    program = request.value(_PROCESS).partition(" (")[0].rpartition("\\")[2]
    return f"{program} for {request.value(_USER)}: {comment_of(request)}"


def comment_of(request: SystemEvent) -> str:
    """What was given to ``shutdown.exe /c``."""
    return request.value(_COMMENT)


def comment_for(tag: Tag) -> str:
    """The comment with which a step requests a shutdown. ``tag``: ``RUN-STEP``."""
    return f"nodefall {tag}"


def abort_own_words(tag: Tag) -> tuple[str, ...]:
    """Program and arguments that abort the pending shutdown if the step with ``tag`` has requested it."""
    words = " ".join("'" + word.replace("'", "''") + "'" for word in query_words(_EVENTS, 1))
    return powershell(
        f"$newest=[string](& {words});"
        f"if($newest.Contains('>{comment_for(tag)}<')){{& '{system_program('shutdown')}' /a;exit $LASTEXITCODE}}"
    )

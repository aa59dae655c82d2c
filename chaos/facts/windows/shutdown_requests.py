"""Shutdown that somebody has requested, and that is neither aborted nor over.

Windows has no query for it. Its trace in the System log is User32 1074, without a later 1075 (aborted) or
Kernel-General 12 (started). The record does not show whether the countdown still runs; its texts are translated, its
comment is not. A later request does not replace one that is pending: Windows refuses it, or goes down at once.
"""

from __future__ import annotations

from itertools import takewhile

from chaos.facts.windows._events import KERNEL_GENERAL, USER32, SystemEvent, parse_events, query_events, query_words
from chaos.model.state_types import Tag
from chaos.model.windows import powershell

_REQUESTED, _ABORTED, _STARTED = (USER32, 1074), (USER32, 1075), (KERNEL_GENERAL, 12)
_EVENTS = (_REQUESTED, _ABORTED, _STARTED)
_PROCESS, _COMMENT, _USER = "param1", "param6", "param7"
_COUNT = 16  # events; so many requests since a start or an abort are not expected
NEWEST_REQUESTS = query_events(_EVENTS, _COUNT)


def pending_request(stdout: str, exit_code: int) -> SystemEvent | None:
    """The newest request, by the output of NEWEST_REQUESTS; None if there is none. Raises ValueError."""
    return next(iter(pending_requests(stdout, exit_code)), None)


def pending_requests(stdout: str, exit_code: int) -> list[SystemEvent]:
    """Requests since the last start or abort, the newest first. Raises ValueError, also where the log has no event.

    Each start leaves one: without it the log was cleared, or has overwritten it, and a request with it.
    """
    events = parse_events(stdout, exit_code)
    if not events:
        raise ValueError("the System log has no start of Windows, and nothing later: it was cleared, or overwritten")
    return list(takewhile(lambda event: event.key == _REQUESTED, events))


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
    """Program and arguments that abort the pending shutdown if the step with ``tag`` has requested it.

    They exit with 0 if there is none, and not if the log could not be read.
    """
    _, *query = query_words(_EVENTS, _COUNT)
    return powershell("failsafe-cancel-shutdown", arguments=query, comment=comment_for(tag))

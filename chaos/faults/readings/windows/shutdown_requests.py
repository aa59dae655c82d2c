"""Shutdowns that were requested and are neither aborted nor over.

Windows has no query for it. Its trace in the System log is User32 1074, without a later 1075 (aborted) or
Kernel-General 12 (started). The record does not show whether the countdown still runs; its texts are translated, its
comment is not. A later request does not replace one that is pending: Windows refuses it, or goes down immediately.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Self

from pydantic import Field, model_validator

from chaos.core.fact import host_fact
from chaos.core.field_types import Model
from chaos.core.node_mark import Tag
from chaos.core.windows import powershell
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED, NOT_PREPARING
from chaos.faults.readings.windows.restarts import (
    EVENTS,
    KERNEL_GENERAL,
    USER32,
    SystemEvent,
    parse_events,
    query_events,
    query_words,
)

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
        raise ValueError("the System log contains no start of Windows: it was cleared or overwritten")
    return list(takewhile(lambda event: event.key == _REQUESTED, events))


def describe_request(request: SystemEvent) -> str:
    r"""Describe a request, like ``shutdown.exe for WIN1\Administrator: nodefall r1-off``."""
    program = request.value(_PROCESS).partition(" (")[0].rpartition("\\")[2]
    return f"{program} for {request.value(_USER)}: {comment_of(request)}"


def comment_of(request: SystemEvent) -> str:
    """The comment that was given to ``shutdown.exe /c``."""
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


@host_fact(
    "scheduled-shutdown",
    "who requested the shutdown that is pending, and the comment",
    NEWEST_REQUESTS,
    form=EVENTS,
)
def scheduled_shutdown(stdout: str, exit_code: int) -> str:
    r"""Text: who requested the shutdown, and the comment; what logind prints for none if there is none.

    As ``shutdown.exe for WIN1\Administrator: nodefall r1-off``.
    """
    request = pending_request(stdout, exit_code)
    return describe_request(request) if request else NO_SHUTDOWN_SCHEDULED


@host_fact(
    "preparing-for-shutdown",
    "whether a shutdown was requested, and is neither aborted nor over",
    NEWEST_REQUESTS,
    form=EVENTS,
)
def preparing_for_shutdown(stdout: str, exit_code: int) -> str:
    """Text, as logind prints it: ``b true`` or ``b false``. True from the request on: no later begin is recorded."""
    return "b true" if pending_request(stdout, exit_code) else NOT_PREPARING


_TAG = r"^(?:[A-Za-z0-9][A-Za-z0-9-]{0,199})?$"


class NodefallShutdownParams(Model):
    """The step or the run, but not both."""

    tag: str = Field("", pattern=_TAG, description="The ID of a step as RUN-STEP.")
    run: str = Field("", pattern=_TAG, description="The ID of a run, for any of its steps.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.tag) == bool(self.run):
            raise ValueError("give tag or run")
        return self


@host_fact(
    "nodefall-shutdown",
    "whether a pending shutdown was requested by a run or step of nodefall",
    lambda _, _options: NEWEST_REQUESTS,
    params=NodefallShutdownParams,
    form=EVENTS,
)
def nodefall_shutdown(stdout: str, exit_code: int, options: NodefallShutdownParams) -> bool:
    """True or false, by the comments of the requests: one is that of the step, or of any step of the run."""
    comments = [comment_of(request) for request in pending_requests(stdout, exit_code)]
    if options.tag:
        return comment_for(options.tag) in comments
    return any(comment.startswith(f"{comment_for(options.run)}-") for comment in comments)

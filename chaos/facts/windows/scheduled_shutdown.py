"""Shutdown that was requested, with a countdown or without."""

from __future__ import annotations

from chaos.facts.logind import NO_SHUTDOWN_SCHEDULED
from chaos.facts.windows.shutdown_requests import NEWEST_REQUESTS, describe_request, pending_request
from chaos.model.fact import HostFact


class ScheduledShutdown(HostFact):
    r"""Text: who requested the shutdown, and the comment; what logind prints for none if there is none.

    As ``shutdown.exe for WIN1\Administrator: nodefall r1-off``.
    """

    name = "scheduled-shutdown"
    summary = "who requested the shutdown that is pending, and the comment"
    command = NEWEST_REQUESTS

    def parse(self, stdout: str, exit_code: int) -> str:
        request = pending_request(stdout, exit_code)
        return describe_request(request) if request else NO_SHUTDOWN_SCHEDULED


FACT = ScheduledShutdown()

"""Whether a shutdown is pending."""

from __future__ import annotations

from chaos.facts.logind import NOT_PREPARING
from chaos.facts.windows.shutdown_requests import NEWEST_REQUESTS, pending_request
from chaos.model.fact import HostFact


class PreparingForShutdown(HostFact):
    """Text, as logind prints it: ``b true`` or ``b false``. True from the request on: no later begin is recorded."""

    name = "preparing-for-shutdown"
    summary = "whether a shutdown was requested, and is neither aborted nor over"
    command = NEWEST_REQUESTS

    def parse(self, stdout: str, exit_code: int) -> str:
        return "b true" if pending_request(stdout, exit_code) else NOT_PREPARING


FACT = PreparingForShutdown()

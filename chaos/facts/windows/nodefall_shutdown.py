"""Whether the pending shutdown is one that nodefall requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.facts.windows.shutdown_requests import NEWEST_REQUEST, comment_for, comment_of, pending_request
from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact


class NodefallShutdownParams(Model):
    """Which step or run."""

    tag: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,199}$", description="a run's ID, or RUN-STEP")


class NodefallShutdown(HostFact):
    """True or false, by the comment of the request: it is that of the step, or of any step of the run."""

    name = "nodefall-shutdown"
    summary = "whether the pending shutdown was requested by a run or step of nodefall"
    params = NodefallShutdownParams
    options: NodefallShutdownParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return NEWEST_REQUEST

    def parse(self, stdout: str, exit_code: int) -> bool:
        request = pending_request(stdout, exit_code)
        own = comment_for(self.options.tag)
        return request is not None and (comment_of(request) == own or comment_of(request).startswith(f"{own}-"))


FACT = NodefallShutdown()

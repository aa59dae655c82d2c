"""Whether a pending shutdown is one that nodefall requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from chaos.facts.windows.shutdown_requests import NEWEST_REQUESTS, comment_for, comment_of, pending_requests
from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact

_TAG = r"^(?:[A-Za-z0-9][A-Za-z0-9-]{0,199})?$"


class NodefallShutdownParams(Model):
    """Which step or run: one of the two."""

    tag: str = Field("", pattern=_TAG, description="of a step: RUN-STEP")
    run: str = Field("", pattern=_TAG, description="a run's ID, for any of its steps")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.tag) == bool(self.run):
            raise ValueError("give tag or run")
        return self


class NodefallShutdown(HostFact):
    """True or false, by the comments of the requests: one is that of the step, or of any step of the run."""

    name = "nodefall-shutdown"
    summary = "whether a pending shutdown was requested by a run or step of nodefall"
    params = NodefallShutdownParams
    options: NodefallShutdownParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return NEWEST_REQUESTS

    def parse(self, stdout: str, exit_code: int) -> bool:
        comments = [comment_of(request) for request in pending_requests(stdout, exit_code)]
        if self.options.tag:
            return comment_for(self.options.tag) in comments
        return any(comment.startswith(f"{comment_for(self.options.run)}-") for comment in comments)


FACT = NodefallShutdown()

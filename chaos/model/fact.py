"""The base of a fact: one thing to know of a host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand

SECONDS_SINCE_READ = "unread-seconds"  # given to a fact that tells only what is new: how long ago it was read


class HostFact(ABC):
    """``command`` reads it, and :meth:`parse` makes JSON of what came back.

    ``needs`` are facts that the command is made of, as an address to try; each is read once, when first needed, as it
    may not be readable any more when it matters.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    command: HostCommand

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - most need nothing
        """The command, given what it needs. Raises ValueError where that leaves nothing to ask."""
        return self.command

    @abstractmethod
    def parse(self, stdout: str, exit_code: int) -> Any:
        """Raises ValueError if the answer is not understood."""

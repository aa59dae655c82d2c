"""The port of a fact: one thing to know of a host."""

from __future__ import annotations

from typing import Any, Protocol

from chaos.model.command import HostCommand


class HostFact(Protocol):
    """``command`` reads it; ``parse`` makes JSON of what came back. Raises ValueError if that is not understood."""

    name: str
    summary: str
    command: HostCommand

    def parse(self, stdout: str, exit_code: int) -> Any: ...

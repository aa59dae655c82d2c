"""Properties of logind's manager, in the text format of busctl."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

NO_SHUTDOWN_SCHEDULED = '(st) "" 18446744073709551615'

NOT_PREPARING = "b false"

POWERS_OFF = 's "poweroff"'  # of a key


class Property(HostFact):
    """Text: type and value as busctl prints them: ``t 30000000``, ``s "poweroff"``, ``(st) "poweroff" 1774000000``."""

    def __init__(self, name: str, summary: str, property_: str) -> None:
        self.name = name
        self.summary = summary
        self.command = HostCommand(
            (
                "busctl",
                "get-property",
                "org.freedesktop.login1",
                "/org/freedesktop/login1",
                "org.freedesktop.login1.Manager",
                property_,
            ),
            sudo=False,
        )

    def parse(self, stdout: str, exit_code: int) -> str:
        value = stdout.strip()
        if exit_code or not value:
            raise ValueError("logind did not answer")
        return value

"""Unit of the time synchronisation."""

from __future__ import annotations

from chaos.facts.units import parse_unit, show_command
from chaos.model.fact import HostFact

UNITS = (
    "chronyd.service",
    "chrony.service",
    "systemd-timesyncd.service",
    "ntpsec.service",
    "ntpd.service",
    "ntp.service",
    "openntpd.service",
)


class TimeSyncUnit(HostFact):
    """Text: name of the loaded unit, an active one first."""

    name = "time-sync-unit"
    summary = "systemd unit of the time synchronisation"
    command = show_command(UNITS)

    def parse(self, stdout: str, exit_code: int) -> str:
        return parse_unit(stdout, exit_code, UNITS)


FACT = TimeSyncUnit()

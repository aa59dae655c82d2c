"""The unit that keeps the clock right."""

from __future__ import annotations

from chaos.facts.units import active_first, show
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
    """The name of the loaded unit, an active one first."""

    name = "time-sync-unit"
    summary = "systemd unit of the time synchronisation"
    command = show(UNITS)

    def parse(self, stdout: str, exit_code: int) -> str:
        return active_first(stdout, exit_code, UNITS)


FACT = TimeSyncUnit()

"""The programs of the simulated hosts, in the real ones' words."""

from __future__ import annotations

from chaos.lab.servers.process import Program
from chaos.lab.servers.programs import basic, busctl, shutdown, systemctl, systemd

PROGRAMS: dict[str, Program] = {
    **basic.PROGRAMS,
    **busctl.PROGRAMS,
    **shutdown.PROGRAMS,
    **systemctl.PROGRAMS,
    **systemd.PROGRAMS,
}

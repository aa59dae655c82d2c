"""Real-time clock with an alarm: it can power on a host without power control."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class Rtc(HostFact):
    """True or false: true if rtcwake reads an alarm; ``-m show`` changes nothing."""

    name = "rtc"
    summary = "whether the host has a real-time clock with an alarm, and rtcwake (util-linux) to set it"
    command = HostCommand(("rtcwake", "-m", "show"), accept=(0, 1, 127))

    def parse(self, stdout: str, exit_code: int) -> bool:
        if exit_code not in (0, 1, 127):
            raise ValueError("rtcwake did not answer")
        return exit_code == 0 and stdout.strip().startswith("alarm:")


FACT = Rtc()

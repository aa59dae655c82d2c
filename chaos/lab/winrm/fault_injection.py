"""Faults of WinRM that the lab injects on request (winrmMisbehaviours). Users report them; invented: the seconds.

==================== =================================================================================================
``hang-after-boot``  After a boot the ports accept connections, and answer nothing for 10 s.
``busy-after-boot``  In the next 20 s every operation ends with the time-out fault; about every second one was done.
``busy-send``        The first Send to a command is refused with ERROR_BUSY (170): its input did not arrive.
``aborted-clean-up`` Signal and Delete are done, and answer ERROR_OPERATION_ABORTED (995).
``second-reboot``    3 s after the first answer that follows a boot the machine restarts once more, as updates do.
==================== =================================================================================================
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable

from chaos.lab.spec import WinRmMisbehaviour
from chaos.lab.windows.power import PowerError, ShutdownRequest
from chaos.lab.winrm import faults
from chaos.lab.winrm.namespaces import SHELL, TRANSFER
from chaos.lab.winrm.soap import Request
from chaos.lab.winshell.process import WinHost

HANG, BUSY, UNTIL_REBOOT = 10.0, 20.0, 3.0  # seconds
_UPDATE = ShutdownRequest(
    "reboot", 0.0, r"C:\Windows\servicing\TrustedInstaller.exe", reason="Operating System: Upgrade (Planned)|0x80020003"
)
_CLEAN_UP = (f"{SHELL}/Signal", f"{TRANSFER}/Delete")


class WinRmFaultInjector:
    """Injects the ``enabled`` faults, which may change while the lab runs.

    A separate random generator keeps faults from changing the simulation.
    """

    def __init__(self, host: WinHost, names: Iterable[WinRmMisbehaviour] = ()) -> None:
        self.enabled: set[WinRmMisbehaviour] = set(names)
        self._host, self._rng = host, random.Random(host.machine.name)  # noqa: S311 - repeatable, not secret
        self._awake = asyncio.Event()
        self._awake.set()
        self._busy_until = 0.0
        self._refused: set[str] = set()  # commands whose first Send was refused
        self._will_reboot = self._has_rebooted = False

    def on_start(self, *, after_boot: bool) -> None:
        """Note that the service has started."""
        self._awake.set()
        if not after_boot:
            return
        hang = HANG if "hang-after-boot" in self.enabled else 0.0
        if hang:
            self._awake.clear()
            self._host.sim.after(hang, self._awake.set)
        self._busy_until = self._host.sim.now + hang + BUSY
        self._will_reboot = not self._has_rebooted
        self._has_rebooted = False

    async def wait_awake(self) -> None:
        """Wait while the ports answer nothing. Simulated time does not wait for this."""
        await self._awake.wait()

    async def perform(self, request: Request, operation: Callable[[], Awaitable[str]]) -> str:
        """Answer of an operation. Raises Fault."""
        if "busy-after-boot" in self.enabled and self._host.sim.now < self._busy_until:
            await self._be_busy(request, operation)
        self._check_send(request)
        answer = await operation()
        if "second-reboot" in self.enabled and self._will_reboot:
            self._will_reboot, self._has_rebooted = False, True
            self._host.sim.after(UNTIL_REBOOT, self._reboot)
        if "aborted-clean-up" in self.enabled and request.action in _CLEAN_UP:
            raise faults.aborted()
        return answer

    async def _be_busy(self, request: Request, operation: Callable[[], Awaitable[str]]) -> None:
        """Raises Fault."""
        if self._rng.random() < 0.5:
            await operation()
        await self._host.waits.wait_until(self._host.sim.now + request.timeout)
        raise faults.timed_out()

    def _check_send(self, request: Request) -> None:
        """Raises Fault."""
        if "busy-send" not in self.enabled or request.action != f"{SHELL}/Send":
            return
        stream = request.body.find(f".//{{{SHELL}}}Stream")
        command = (stream.get("CommandId") if stream is not None else None) or ""
        if command not in self._refused:
            self._refused.add(command)
            raise faults.busy()

    def _reboot(self) -> None:
        try:
            self._host.machine.power.request(_UPDATE)
        except PowerError:
            return  # it goes down anyway

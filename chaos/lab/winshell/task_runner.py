"""Programs of the task scheduler: they run as SYSTEM, without a client, until they end or the machine does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from chaos.lab.hostshell.process import discard, no_input
from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.process import Program, ProgramNotFoundError, WinHost, WinProcess, launch

SYSTEM = r"NT AUTHORITY\SYSTEM"
FILE_NOT_FOUND = 0x80070002


class TaskRunner:
    """Runs the tasks of ``machine``; simulated time waits while a program computes."""

    def __init__(
        self, machine: WindowsMachine, sim: SimClock, lockstep: Lockstep, programs: Mapping[str, Program]
    ) -> None:
        self._host = WinHost(machine, sim, lockstep, programs)
        self._running: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Run tasks from now on, in this event loop."""
        self._host.machine.tasks.run = self._run

    async def stop(self) -> None:
        """End all programs."""
        for task in list(self._running):
            task.cancel()

    def _run(self, line: str, done: Callable[[int], None]) -> Callable[[], None]:
        """Start a command line; ``done`` gets its exit code. Returns what ends the program."""
        process = WinProcess(self._host, SYSTEM, discard, discard, no_input)

        async def run() -> None:
            with self._host.waits.request():
                try:
                    code = await launch(process, line)
                except ProgramNotFoundError:
                    code = FILE_NOT_FOUND
                done(code)

        task = asyncio.get_running_loop().create_task(run())
        self._host.waits.hold_for_new_tasks()
        self._running.add(task)
        task.add_done_callback(self._running.discard)

        def end() -> None:
            task.cancel()

        return end

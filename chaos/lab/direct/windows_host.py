"""A simulated Windows machine without a connection: the same programs and task scheduler."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.direct.host import Cancelled, DirectHost, DirectProgram, SimWaits, Task, line_reader
from chaos.lab.hostshell.process import discard, no_input
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from chaos.lab.windows.machine import SSH_PORT, WindowsMachine
from chaos.lab.winshell.process import (
    FILE_NOT_FOUND,
    SYSTEM,
    TOOLS,
    ProgramNotFoundError,
    WinHost,
    WinProcess,
    launch,
    run_line,
)
from chaos.lab.winshell.programs import PROGRAMS

CRASH_TOOL = TOOLS + "notmyfault64.exe"
_CLIENT, _CLIENT_PORT = "127.0.0.1", 40000  # as of a lab's process
_USER = "Administrator"


class WindowsHost(DirectHost):
    """Exit codes are those of the programs, as over WinRM."""

    def __init__(self, machine: Machine, sim: SimClock, _: str, seed: int) -> None:
        assert isinstance(machine, WindowsMachine)  # noqa: S101 - the only one it serves
        super().__init__(machine, sim, _USER, seed)
        self._windows = machine
        self._host = WinHost(machine, sim, SimWaits(sim), PROGRAMS)
        machine.tasks.run = self._run_task

    @property
    def is_reachable(self) -> bool:
        return self.machine.is_reachable and self._windows.accepts(_CLIENT)

    async def _execute(self, program: DirectProgram, line: str, stdin: str) -> int:
        own = next(iter(self._windows.network.resolve(self._windows.name).values()))
        process = WinProcess(
            self._host,
            f"{self._windows.computer}\\{_USER}",
            program.write_out,
            program.write_err,
            line_reader(stdin),
            is_foreground=True,
            connection=f"{_CLIENT} {_CLIENT_PORT} {own} {SSH_PORT}",
        )
        return await run_line(process, line)

    def _run_task(self, line: str, done: Callable[[int], None]) -> Callable[[], None]:
        """Start a command line of the task scheduler; ``done`` gets its exit code. Returns what ends the program."""
        process = WinProcess(self._host, SYSTEM, discard, discard, no_input, is_foreground=True)

        async def run() -> int:
            try:
                return await launch(process, line)
            except ProgramNotFoundError:
                return FILE_NOT_FOUND

        def report(task: Task[int]) -> None:
            try:
                done(task.result())
            except Cancelled:  # by the scheduler, which asks for no exit code then
                return

        task = Task(run())
        task.add_done_callback(report)
        return task.cancel

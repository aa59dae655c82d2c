"""OpenSSH of a Windows machine, with cmd.exe as default shell.
Programs of the task scheduler: they run as SYSTEM, without a client, until they end or the machine does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import asyncssh

from chaos.lab.hostshell.process import discard, no_input
from chaos.lab.hostshell.ssh import SshServer
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.windows.machine import SSH_PORT, WindowsMachine
from chaos.lab.winshell.connections import InboundGate
from chaos.lab.winshell.process import (
    FILE_NOT_FOUND,
    SYSTEM,
    Program,
    ProgramNotFoundError,
    WinHost,
    WinProcess,
    launch,
    run_line,
)
from chaos.lab.winshell.programs import PROGRAMS


class WindowsSshServer(SshServer):
    """SSH server whose commands are lines of cmd.exe. Behind a block rule its connections fall silent."""

    server_version = "OpenSSH_for_Windows_8.6"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._gate = InboundGate(self._win_host().machine, self._port)

    def _on_machine_change(self, machine: Machine) -> None:
        self._gate.update()
        super()._on_machine_change(machine)

    async def _serve(self, channel: asyncssh.SSHServerProcess[str]) -> None:
        await self._gate.wait()
        await super()._serve(channel)

    async def _run(self, channel: asyncssh.SSHServerProcess[str]) -> int:
        if channel.command is None:
            channel.stderr.write("the lab simulates no interactive shell\r\n")
            return 1

        read_line = self._line_reader(channel)
        host, waiting = self._win_host(), list[Callable[[], None]]()
        out, err = (partial(self._write, stream.write, waiting) for stream in (channel.stdout, channel.stderr))
        process = WinProcess(
            *(host, f"{host.machine.computer}\\{self.user}", out, err, read_line),
            is_foreground=True,
            connection=self._connection(channel),
        )
        code = await run_line(process, channel.command)
        if not self._gate.is_open:
            with self._lockstep.suspend_request():
                await self._gate.wait()
        for write in waiting:
            write()
        # Packer sees 1 over SSH where WinRM has 1115 and 1190; which other codes change is invented
        return code if 0 <= code < 256 else 1

    def _write(self, write: Callable[[str], None], waiting: list[Callable[[], None]], text: str) -> None:
        """Write, or while packets do not pass, and after it, keep what is written for the end."""
        if self._gate.is_open and not waiting:
            write(text)
        else:
            waiting.append(lambda: write(text))

    def _connection(self, channel: asyncssh.SSHServerProcess[str]) -> str:
        """SSH_CONNECTION: the client's address and port, then the machine's own."""
        machine = self._win_host().machine
        peer = channel.get_extra_info("peername")
        own = next(iter(machine.network.resolve(machine.name).values()))
        return f"{peer[0]} {peer[1]} {own} {SSH_PORT}"

    def _win_host(self) -> WinHost:
        assert isinstance(self._machine, WindowsMachine)  # noqa: S101 - the only one it serves
        return WinHost(self._machine, self.host.sim, self._lockstep, PROGRAMS)


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

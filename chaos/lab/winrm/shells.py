"""Remote shells of one machine and the commands in them; what is lost when the service stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from chaos.lab.sim.clock import Timer
from chaos.lab.sim.waits import Waits

_ENCODINGS = {"65001": "utf-8", "1252": "cp1252", "850": "cp850"}
MAX_CMD_LINE = 8191


@dataclass(eq=False)
class RunningCommand:
    """A command. ``chunks``: (stream, text) not yet received; ``exit_code`` is None while it runs."""

    id: str
    encoding: str
    waits: Waits
    chunks: list[tuple[str, str]] = field(default_factory=list)
    exit_code: int | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    _input: str = ""
    _input_ended: bool = False
    _input_changed: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self, run: Callable[[], Awaitable[int]]) -> None:
        """Run in the background; simulated time waits while the program computes."""

        async def body() -> None:
            with self.waits.request():
                self.end(await run())

        self.task = asyncio.get_running_loop().create_task(body())
        self.waits.hold_for_new_tasks()

    def end(self, code: int) -> None:
        """Set the exit code, if it has none."""
        if self.exit_code is None:
            self.exit_code = code
            self.changed.set()

    def terminate(self) -> None:
        """End the program, with the exit code of Ctrl-C."""
        if self.task is not None:
            self.task.cancel()
        self.end(-1073741510)  # STATUS_CONTROL_C_EXIT, as a signed number

    def write(self, stream: str, text: str) -> None:
        """Append output."""
        if text and self.exit_code is None:
            self.chunks.append((stream, text))
            self.changed.set()

    def take(self) -> list[tuple[str, str]]:
        """Take the output that was not received yet."""
        taken, self.chunks = self.chunks, []
        if self.exit_code is None:
            self.changed.clear()
        return taken

    def feed(self, data: bytes, *, ends: bool) -> None:
        """Append to stdin."""
        self._input += data.decode(self.encoding, "replace")
        self._input_ended = self._input_ended or ends
        self._input_changed.set()

    async def read_line(self) -> str:
        """Next line of stdin with its end, the rest at the end of input, "" after it."""
        while "\n" not in self._input and not self._input_ended:
            self._input_changed.clear()
            with self.waits.suspend_request():
                await self._input_changed.wait()
        head, end, self._input = self._input.partition("\n")
        return head + end


@dataclass(eq=False)
class RemoteShell:
    """One shell. ``operations``: commands that count against the user's quota until the shell is deleted."""

    id: str
    owner: str
    client_ip: str
    variables: list[tuple[str, str]]
    directory: str
    idle_timeout: float
    encoding: str
    input_streams: str
    output_streams: str
    commands: dict[str, RunningCommand] = field(default_factory=dict)
    operations: int = 0
    idle_timer: Timer | None = None

    def close(self) -> None:
        """End all commands."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        for command in self.commands.values():
            command.terminate()


def encoding_of(code_page: str) -> str:
    """Python's name of a code page; 437 for those that the lab does not know."""
    return _ENCODINGS.get(code_page, "cp437")

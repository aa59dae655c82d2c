"""Remote shells of one machine and the commands in them; what is lost when the service stops."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from chaos.lab.sim import Timer
from chaos.lab.sim.lockstep import Waits
from chaos.lab.winrm.faults import SHELL

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

    def received(self, streams: list[str]) -> str:
        """Answer to Receive: output in order of time; with the end, an empty piece of each stream and the exit code."""
        parts = []
        for stream, text in self.take():
            if stream in streams:
                data = base64.b64encode(text.encode(self.encoding, "replace")).decode()
                parts.append(f'<rsp:Stream Name="{stream}" CommandId="{self.id}">{data}</rsp:Stream>')
        state, code = "Running", ""
        if self.exit_code is not None:
            state, code = "Done", f"<rsp:ExitCode>{self.exit_code}</rsp:ExitCode>"
            parts += [f'<rsp:Stream Name="{name}" CommandId="{self.id}" End="true"></rsp:Stream>' for name in streams]
        return (
            f'<rsp:ReceiveResponse>{"".join(parts)}<rsp:CommandState CommandId="{self.id}" '
            f'State="{SHELL}/CommandState/{state}">{code}</rsp:CommandState></rsp:ReceiveResponse>'
        )

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

    def described(self, resource: str) -> str:
        """The element Shell. Lifetime and Name are not in it, though they may be asked for."""
        variables = "".join(
            f"<rsp:Variable Name={quoteattr(name)}>{escape(value)}</rsp:Variable>" for name, value in self.variables
        )
        directory = f"<rsp:WorkingDirectory>{escape(self.directory)}</rsp:WorkingDirectory>"
        return (
            f'<rsp:Shell xmlns:rsp="{SHELL}"><rsp:ShellId>{self.id}</rsp:ShellId><rsp:ResourceUri>{escape(resource)}'
            f"</rsp:ResourceUri><rsp:Owner>{escape(self.owner)}</rsp:Owner><rsp:ClientIP>{escape(self.client_ip)}"
            f"</rsp:ClientIP>{directory if self.directory else ''}"
            f"{f'<rsp:Environment>{variables}</rsp:Environment>' if variables else ''}"
            f"<rsp:IdleTimeOut>PT{self.idle_timeout:.3f}S</rsp:IdleTimeOut>"
            f"<rsp:InputStreams>{escape(self.input_streams)}</rsp:InputStreams>"
            f"<rsp:OutputStreams>{escape(self.output_streams)}</rsp:OutputStreams>"
            "<rsp:ShellRunTime>P0DT0H0M0S</rsp:ShellRunTime><rsp:ShellInactivity>P0DT0H0M0S</rsp:ShellInactivity>"
            "</rsp:Shell>"
        )

    def close(self) -> None:
        """End all commands."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        for command in self.commands.values():
            command.terminate()

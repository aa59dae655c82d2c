"""An SSH server that passes commands on as sshd of Windows does: to cmd.exe or PowerShell, by their rules."""

from __future__ import annotations

import asyncio
import getpass
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from chaos.machines.transports.settings import HostSettings
from chaos.machines.windows_command_line import WindowsShell
from tests.kit.windows_rules import read_by_cmd, read_by_powershell, read_by_runtime


@dataclass
class WindowsSshd:
    """``started`` are the programs that ran, with their arguments as they read them."""

    settings: HostSettings
    shell: WindowsShell
    started: list[list[str]] = field(default_factory=list)
    exit_code: int = 0
    hangs: bool = False  # programs do not end
    on_start: Callable[[], None] = lambda: None

    def argv(self, line: str) -> list[str]:
        """What the program that ``line`` starts reads."""
        if self.shell is WindowsShell.CMD:
            return read_by_runtime(read_by_cmd(line, {"PATH": r"C:\elsewhere"}))
        program, arguments = read_by_powershell(line)
        return read_by_runtime(f'"{program}" {arguments}')


@contextmanager
def serving_windows(folder: Path, shell: WindowsShell) -> Iterator[WindowsSshd]:
    """A running server, with keys in ``folder``."""
    for name in ("host", "user"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
        (folder / name).chmod(0o600)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    found: list[WindowsSshd] = []

    async def handle(process: asyncssh.SSHServerProcess[str]) -> None:
        found[0].started.append(found[0].argv(process.command or ""))
        found[0].on_start()
        while found[0].hangs:
            await asyncio.sleep(0.05)
        if process.is_closing():  # an error of writing to it would end the whole connection
            return
        stdin = await process.stdin.read()
        process.stdout.write(f"{json.dumps(found[0].started[-1][1:])}\r\n{stdin}")
        process.stderr.write("A system shutdown has already been scheduled.(1190)\n")
        process.exit(found[0].exit_code)

    async def start() -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            asyncssh.SSHServer, "127.0.0.1", 0, server_host_keys=[str(folder / "host")], process_factory=handle,
            authorized_client_keys=str(folder / "user.pub"),
        )  # fmt: skip

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    port = server.get_port()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    settings = HostSettings(
        "win-1", "127.0.0.1", getpass.getuser(), folder / "known_hosts", port, identity_file=folder / "user",
        agent=False, windows_shell=shell,
    )  # fmt: skip
    found.append(WindowsSshd(settings, shell))
    try:
        yield found[0]
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _end(server: asyncssh.SSHAcceptor) -> None:
    """Close it, and end what hangs."""
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

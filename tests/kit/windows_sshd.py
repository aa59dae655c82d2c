"""OpenSSH's server as Windows has it: how cmd.exe and PowerShell read a line, and a server that starts nothing."""

from __future__ import annotations

import asyncio
import base64
import getpass
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from chaos.machines.sessions.settings import HostSettings
from chaos.machines.windows_command_line import WindowsShell


def read_by_runtime(line: str, *, doubled_quote_closes: bool = False) -> list[str]:
    """Arguments of a command line by the C runtime (parse_cmdline), program name included.

    ``doubled_quote_closes``: the rule of runtimes before 2008, by which ``""`` within quotation marks also ends them.
    """
    program, rest = _program(line)
    found = [program]
    i = 0
    while True:
        while i < len(rest) and rest[i] in " \t":
            i += 1
        if i >= len(rest):
            return found
        argument, quoted = "", False
        while i < len(rest) and (quoted or rest[i] not in " \t"):
            slashes = 0
            while i < len(rest) and rest[i] == "\\":
                slashes, i = slashes + 1, i + 1
            if i < len(rest) and rest[i] == '"':
                argument += "\\" * (slashes // 2)
                if slashes % 2:
                    argument += '"'
                elif quoted and rest[i + 1 : i + 2] == '"':
                    argument, i, quoted = argument + '"', i + 1, not doubled_quote_closes
                else:
                    quoted = not quoted
                i += 1
                continue
            argument += "\\" * slashes
            if i < len(rest) and (quoted or rest[i] not in " \t"):
                argument, i = argument + rest[i], i + 1
        found.append(argument)


def _program(line: str) -> tuple[str, str]:
    """The program name, in which backslashes are never special, and the rest."""
    if line.startswith('"'):
        end = line.index('"', 1)
        return line[1:end], line[end + 1 :]
    end = min((line.find(c) for c in " \t" if c in line), default=len(line))
    return line[:end], line[end:]


def read_by_cmd(line: str, environment: Mapping[str, str]) -> str:
    """The command line of the one program that ``cmd.exe /c "line"`` starts. Raises ValueError for any operator."""
    expanded = re.sub(r"%([^%]+)%", lambda m: environment.get(m[1].upper(), m[0]), line)
    out, quoted, i = "", False, 0
    while i < len(expanded):
        c = expanded[i]
        if c == "\n":
            raise ValueError("the line ends here")
        if not quoted and c == "^":
            i += 1
            out += expanded[i : i + 1]
        elif not quoted and c in "&|<>()":
            raise ValueError(f"operator {c} at {i}")
        else:
            quoted = not quoted if c == '"' else quoted
            out += c
        i += 1
    return out


def read_by_powershell(line: str) -> tuple[str, str]:
    """File name and arguments of the process that the line starts; nothing in it needs quotes."""
    assert not set(line) & set('"`%&|<>^!\\\n')
    literals = re.findall(r"FromBase64String\('([A-Za-z0-9+/=]*)'\)", line)
    assert line.count("'") == 2 * len(literals)
    program, arguments = (base64.b64decode(literal).decode("utf-16-le") for literal in literals)
    return program, arguments


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

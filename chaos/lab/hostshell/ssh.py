"""sshd of one machine, with a separate port and host key, while the machine is reachable."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial

import asyncssh

from chaos.lab.hostshell.process import HostSystem, Process, discard, no_input
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell, execute
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.sim.time_source import Listener, PortReservation

_LOGIN_TIMEOUT = 30  # wall seconds


class _Connection(asyncssh.SSHServer):
    """Connection that authenticates one user with one key."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._server.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
        if self._connection:
            self._server.connections.discard(self._connection)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._server.user and key.public_data == self._server.client_key.public_data


class SshServer:
    """SSH server; ``client_key`` logs in as ``user``, and ``sudo`` runs commands as root.

    ``host_key``: a new one by default.
    """

    server_version = "OpenSSH_9.2p1 Debian-2+deb12u3"

    def __init__(
        self,
        machine: Machine,
        port: PortReservation,
        lockstep: Lockstep,
        sim: SimClock,
        user: str,
        client_key: asyncssh.SSHKey,
        host_key: asyncssh.SSHKey | None = None,
    ) -> None:
        self._machine, self._port, self._lockstep = machine, port, lockstep
        self.user, self.client_key = user, client_key
        self._host_keys: dict[str, asyncssh.SSHKey] = {machine.host_key_owner: host_key} if host_key else {}
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.host = HostSystem(machine, sim, lockstep, self._run_as_root, PROGRAMS)
        self._tasks: set[asyncio.Task[int]] = set()
        self._was_reachable = False

    @property
    def host_key(self) -> asyncssh.SSHKey:
        """The key of the present boot, if each boot has another."""
        owner = self._machine.host_key_owner
        if owner not in self._host_keys:
            self._host_keys[owner] = asyncssh.generate_private_key("ssh-ed25519")
        return self._host_keys[owner]

    async def start(self) -> None:
        self._machine.on_change.append(self._on_machine_change)
        self._on_machine_change(self._machine)
        await self._port.wait_started()

    async def stop(self) -> None:
        self._disconnect_all()
        self._port.close()

    def _on_machine_change(self, machine: Machine) -> None:
        if machine.is_reachable:
            self._port.start_listening(self._listen, self._lockstep)
        elif self._was_reachable:
            self._port.stop_listening()
            self._disconnect_all()
            self.host.lose_power()
        self._was_reachable = machine.is_reachable

    def _disconnect_all(self) -> None:
        """Abort all connections and programs, as the machine is unreachable."""
        for connection in list(self.connections):
            connection.abort()
        for task in list(self._tasks):
            task.cancel()

    async def _listen(self, sock: socket.socket) -> Listener:
        return await asyncssh.listen(
            sock=sock,
            server_factory=lambda: _Connection(self),
            server_host_keys=[self.host_key],
            process_factory=self._serve,
            errors="replace",
            login_timeout=_LOGIN_TIMEOUT,
            server_version=self.server_version,
            sftp_factory=None,
            agent_forwarding=False,
        )

    async def _serve(self, channel: asyncssh.SSHServerProcess[str]) -> None:
        with self._lockstep.request():
            task = asyncio.get_running_loop().create_task(self._run(channel))
            self._tasks.add(task)
            try:
                code = await task
            except (asyncio.CancelledError, BrokenPipeError, ConnectionError):
                return  # the machine is off or the client has disconnected
            finally:
                task.cancel()
                self._tasks.discard(task)
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                channel.exit(code)

    async def _run(self, channel: asyncssh.SSHServerProcess[str]) -> int:
        if channel.command is None:
            channel.stderr.write("the lab simulates no interactive shell\n")
            return 1

        read_line = self._line_reader(channel)
        process = Process(
            self.host, self.user, channel.stdout.write, channel.stderr.write, read_line, _environment(channel)
        )
        return await Shell(process, ["bash"], bash=True).run(channel.command)

    def _line_reader(self, channel: asyncssh.SSHServerProcess[str]) -> Callable[[], Awaitable[str]]:
        """Reads a line of the channel's stdin; simulated time does not wait for it."""

        async def read_line() -> str:
            with self._lockstep.suspend_request():
                return str(await channel.stdin.readline())

        return read_line

    def _run_as_root(self, argv: list[str]) -> None:
        """Run the command of a timer now; simulated time waits for it."""
        process = Process(self.host, "root", discard, discard, no_input)
        self._start_detached(partial(execute, process, argv, "systemd"))

    def _start_detached(self, program: Callable[[], Awaitable[int]]) -> None:
        """Run a program without a client; simulated time waits while it computes."""

        async def run() -> int:
            with self._lockstep.request():
                return await program()

        task = asyncio.get_running_loop().create_task(run())
        self._lockstep.hold_for_new_tasks()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _environment(channel: asyncssh.SSHServerProcess[str]) -> dict[str, str]:
    """Environment as set by sshd: address and port of the client, then of the server."""
    ends = [*channel.get_extra_info("peername")[:2], *channel.get_extra_info("sockname")[:2]]
    return {"SSH_CONNECTION": " ".join(str(end) for end in ends)}

"""An SSH connection to one host: its socket, its jump hosts, verified host keys, a login with keys."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chaos.core.errors import Unreachable
from chaos.machines.sessions.host_keys import (
    HostKeyPin,
    describe_key,
    known_hosts_name,
    known_key_types,
    load_known_hosts,
    verify,
)
from chaos.machines.sessions.login_slots import JUMP_LIMITER
from chaos.machines.sessions.settings import HostSettings

if TYPE_CHECKING:
    import paramiko

    from chaos.machines.ssh.client import ClientTransport

KEEPALIVE_INTERVAL = 15  # seconds between two packets on an idle connection
ACK_TIMEOUT = 30  # seconds without an acknowledgement after which the kernel drops a connection
# paramiko logs tracebacks of lost connections, which are reported as outcomes; its global loggers stay unchanged.
LOG_CHANNEL = "chaos.machines.transports.paramiko"


logging.getLogger(LOG_CHANNEL).setLevel(logging.CRITICAL)


@dataclass(slots=True)
class SshConnection:
    """The transport to the host; ``stack`` closes it together with its hops."""

    transport: paramiko.Transport
    stack: ExitStack

    @property
    def is_alive(self) -> bool:
        return self.transport.is_active()

    def close(self) -> None:
        self.stack.close()


def close_quietly(close: Callable[[], None]) -> None:
    """Close a channel or a transport, even if it is broken and paramiko's last message fails."""
    with suppress(EOFError, OSError):
        close()


def connect(settings: HostSettings, pin: HostKeyPin) -> SshConnection:
    """Connect, hop by hop. Raises Unreachable, or Refused for host keys or identity files that cannot be used.

    ``pin`` is of the host itself: its key is verified from end to end, whatever machine a jump host is.
    """
    transport: paramiko.Transport | None = None
    with ExitStack() as stack:
        for index, hop in enumerate((*settings.jumps, settings)):
            via = settings.jumps[:index]
            with JUMP_LIMITER.slot(hop) if hop is not settings else nullcontext():
                try:
                    transport = _connect_hop(transport, hop, via, stack, pin if hop is settings else HostKeyPin())
                except BaseException:
                    stack.close()  # before the login slot is free
                    raise
        assert transport is not None  # noqa: S101 - the loop runs at least once, for the host itself
        return SshConnection(transport, stack.pop_all())


def _connect_hop(
    before: paramiko.Transport | None,
    hop: HostSettings,
    via: tuple[HostSettings, ...],
    stack: ExitStack,
    pin: HostKeyPin,
) -> paramiko.Transport:
    from chaos.machines.ssh.login import log_in  # noqa: PLC0415 - slow

    sock = _open_forwarded_channel(before, hop) if before else open_socket(hop)
    stack.callback(close_quietly, sock.close)
    transport = _handshake(sock, hop, via, stack, pin)
    log_in(transport, hop)
    transport.set_keepalive(KEEPALIVE_INTERVAL)
    return transport


def open_socket(settings: HostSettings) -> socket.socket:
    """A TCP connection to the host. Raises Unreachable."""
    try:
        sock = socket.create_connection((settings.address, settings.port), settings.connect_timeout)
    except OSError as error:
        raise Unreachable(
            f"{settings.label} cannot be reached: {error.strerror or error}",
            hint="check address, port and proxyJump in the inventory, and that sshd runs on the host",
        ) from error
    # Without this, each new channel waits 40 ms for a delayed acknowledgement (paramiko never sets it).
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, ACK_TIMEOUT * 1000)
    return sock


def _open_forwarded_channel(transport: paramiko.Transport, settings: HostSettings) -> paramiko.Channel:
    import paramiko  # noqa: PLC0415 - slow

    destination = (settings.address, settings.port)
    try:
        return transport.open_channel("direct-tcpip", destination, ("127.0.0.1", 0), timeout=settings.connect_timeout)
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise Unreachable(
            f"{settings.label} cannot be reached through its jump host: {error}",
            hint="the jump host must reach it, and permit forwarding (AllowTcpForwarding, PermitOpen)",
        ) from error


def _handshake(
    sock: socket.socket | paramiko.Channel,
    settings: HostSettings,
    via: tuple[HostSettings, ...],
    stack: ExitStack,
    pin: HostKeyPin,
) -> ClientTransport:
    """Exchange keys and verify the host key, before sending anything else."""
    import paramiko  # noqa: PLC0415 - slow

    from chaos.machines.ssh.client import ClientTransport, handshake_error  # noqa: PLC0415 - slow

    entries = load_known_hosts(settings)
    transport: ClientTransport | None = None
    try:
        transport = ClientTransport(sock)
        transport.set_log_channel(LOG_CHANNEL)
        stack.callback(close_quietly, transport.close)
        timeout = settings.connect_timeout
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = timeout
        _prefer_key_types(transport, (pin.type, *known_key_types(entries, known_hosts_name(settings))))
        transport.start_client(timeout=timeout)
        key = transport.get_remote_server_key()
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise handshake_error(transport, settings.label, error) from error
    verify(entries, settings, key, via, pin.key)
    pin.verify(describe_key(key), settings.label)
    return transport


def _prefer_key_types(transport: paramiko.Transport, types: tuple[str, ...]) -> None:
    """Prefer host keys of ``types``, as in known_hosts."""
    names = [n for t in types for n in (("rsa-sha2-512", "rsa-sha2-256") if t == "ssh-rsa" else (t,))]
    options = transport.get_security_options()
    usable = list(options.key_types)
    preferred = [n for n in names if n in usable]
    options.key_types = [*preferred, *(n for n in usable if n not in preferred)]

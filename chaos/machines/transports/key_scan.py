"""The key that a host presents, without a login, as ssh-keyscan reads it."""

from __future__ import annotations

import base64
from contextlib import ExitStack
from dataclasses import dataclass

from chaos.core.errors import Unreachable
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.connection import LOG_CHANNEL, close_quietly, open_socket


@dataclass(frozen=True, slots=True)
class ScannedKey:
    """A public key; nothing has verified whose it is."""

    type: str
    blob: bytes

    @property
    def base64(self) -> str:
        return base64.b64encode(self.blob).decode()


def scan(settings: HostSettings) -> ScannedKey:
    """The key that a host presents to this machine, of the type that a connection prefers. Raises Unreachable."""
    import paramiko  # noqa: PLC0415 - slow

    with ExitStack() as stack:
        sock = open_socket(settings)
        stack.callback(close_quietly, sock.close)
        try:
            transport = paramiko.Transport(sock)
            transport.set_log_channel(LOG_CHANNEL)
            stack.callback(close_quietly, transport.close)
            transport.banner_timeout = transport.handshake_timeout = settings.connect_timeout
            transport.start_client(timeout=settings.connect_timeout)
            key = transport.get_remote_server_key()
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise Unreachable(
                f"{settings.label} failed the SSH handshake: {error or 'the connection was closed'}"
            ) from error
        return ScannedKey(key.get_name(), key.asbytes())

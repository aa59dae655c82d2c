"""TLS to a server within the TLS of a proxy, as a socket that is polled, written without waiting and shut down.

urllib3's own (SSLTransport) waits where it is not to wait, and has no shutdown. One thread reads and writes.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any

_RECORD = 16 << 10  # bytes of one record of TLS


class TlsInTls:
    """Takes over a connection of urllib3's SSLTransport after its handshake."""

    def __init__(self, transport: Any) -> None:
        self._outer: ssl.SSLSocket = transport.socket
        self._tls: ssl.SSLObject = transport.sslobj
        self._incoming, self._outgoing = transport.incoming, transport.outgoing
        self.unsent = bytearray()  # encrypted, and not yet taken by the connection to the proxy
        self.fileno, self.settimeout, self.gettimeout = (
            self._outer.fileno,
            self._outer.settimeout,
            self._outer.gettimeout,
        )
        self.shutdown, self.close = self._outer.shutdown, self._outer.close

    def pending(self) -> int:
        """Bytes that have arrived and that polling does not show."""
        return self._tls.pending() or self._incoming.pending or self._outer.pending()

    def recv(self, size: int) -> bytes:
        """Wait for data; nothing at the end. Raises OSError."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._send_sealed()
                data = self._outer.recv(_RECORD)
                self._incoming.write(data) if data else self._incoming.write_eof()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def send(self, data: bytes) -> int:
        """Send data; returns how much was taken. Raises SSLWantWriteError if nothing was: ``unsent`` goes first."""
        self._flush()
        count = self._tls.write(data) if data else 0
        with suppress(ssl.SSLWantWriteError):
            self._send_sealed()
        return count

    def _send_sealed(self) -> None:
        self.unsent += self._outgoing.read()
        self._flush()

    def _flush(self) -> None:
        while self.unsent:
            del self.unsent[: self._outer.send(self.unsent)]

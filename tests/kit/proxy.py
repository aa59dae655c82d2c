"""A TCP proxy that cuts: for a while every connection is reset and no new one is accepted."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress


class Proxy:
    """Listens on loopback or at the given address; ``cut`` and ``mend`` from any thread.

    ``resets``: ends of connections that ``cut`` has reset.
    """

    def __init__(self, target: tuple[str, int], address: str = "127.0.0.1") -> None:
        self._target = target
        self._listener = socket.create_server((address, 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut = False
        self.resets = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            for connection in self._open:
                self._reset(connection)
            self.resets += len(self._open)
            self._open.clear()

    def mend(self) -> None:
        with self._lock:
            self._cut = False

    def redirect(self, target: tuple[str, int]) -> None:
        """Reset all connections; new ones lead to ``target``."""
        self._target = target
        self.cut()
        self.mend()

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._cut:
                    self._reset(client)
                    continue
                try:
                    server = socket.create_connection(self._target)
                except OSError:  # no server listens there now
                    self._reset(client)
                    continue
                self._open |= {client, server}
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms
            threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        """Pump both ways until both have ended; then the files are free for other connections."""
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server)
        back.join()
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    @staticmethod
    def _reset(connection: socket.socket) -> None:
        """RST, not FIN: a cut line ends no HTTP answer properly."""
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

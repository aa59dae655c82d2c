"""Delivery of 2,000 events per second to each of 10 watchers, none lost or doubled, with bounded memory.

Run from the repository: ``python benchmarks/bench_watch.py [SECONDS]``, 60 by default. The watchers are this process,
the lab is another; each needs a CPU. Their CPU time is printed, as other load of the machine can make them too slow.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from lab_load import lab_load, start_load

RATE, WATCHERS = 2_000, 10
GROWTH = 20.0  # MB in the second half
IDLE_TIMEOUT = 30.0  # seconds without an event
PATH = "/api/v1/pods?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
MARK = b'"seq":"'


class Watcher:
    """One watch. ``seen``: how many events came in their order before one was missing or doubled.

    Bytes are searched as they come: an HTTP client would cost more than the lab that is measured.
    """

    def __init__(self, facts: dict[str, Any], context: ssl.SSLContext) -> None:
        server = urlsplit(facts["apiServer"])
        raw = socket.create_connection((server.hostname, server.port))
        self.socket = context.wrap_socket(raw, server_hostname=server.hostname)
        headers = f"Host: lab\r\nConnection: close\r\nAuthorization: Bearer {facts['token']}"
        self.socket.sendall(f"GET {PATH} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        while not (answer := self.socket.recv(1 << 16)).endswith(b"\r\n\r\n"):
            if not answer:
                raise ConnectionError("the lab rejected the watch")
        self.socket.setblocking(False)
        self.event_count, self.whole = 0, True
        self._rest, self._skip = b"", 0

    def read(self) -> bool:
        """What has come; whether more may come."""
        pieces = [self._rest]
        try:
            while piece := self.socket.recv(1 << 20):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            self._search(b"".join(pieces))
            return self.whole
        return False

    def _search(self, data: bytes) -> None:
        """The mark is at about the same place of each event; what is before it is not looked at."""
        start = 0
        while (at := data.find(MARK, start + self._skip)) >= 0 and (end := data.find(b"\n", at)) >= 0:
            number = data[at + len(MARK) : data.index(b'"', at + len(MARK))]
            self.whole = self.whole and int(number) == self.event_count
            self.event_count += self.whole
            self._skip, start = max(0, at - start - 100), end + 1
        self._rest = data[start:]


def follow(watchers: list[Watcher], total: int) -> None:
    """Read until every watcher has received every event, or no event arrives for IDLE_TIMEOUT."""
    selector = selectors.DefaultSelector()
    for watcher in watchers:
        selector.register(watcher.socket, selectors.EVENT_READ, watcher)
    while selector.get_map() and (ready := selector.select(IDLE_TIMEOUT)):
        for key, _ in ready:
            if not key.data.read() or key.data.seen == total:
                selector.unregister(key.fileobj)
        time.sleep(0.01)  # a real client, too, finds more than one event at a time


def run(seconds: float) -> tuple[dict[str, Any], list[int], float]:
    """The lab's figures, what each watcher has seen, and the watchers' part of a CPU."""
    with lab_load(RATE, seconds) as (process, facts):
        context = ssl.create_default_context(cafile=facts["caFile"])
        watchers = [Watcher(facts, context) for _ in range(WATCHERS)]
        reader = threading.Thread(target=follow, args=(watchers, int(RATE * seconds)))
        reader.start()
        time.sleep(0.5)
        cpu = time.process_time()
        figures = start_load(process)
        reader.join()
        cpu = time.process_time() - cpu
        for watcher in watchers:
            watcher.socket.close()
        return figures, [watcher.event_count for watcher in watchers], cpu / seconds


def main() -> int:
    """Print one line; exit code 1 if a goal is missed."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    figures, seen, cpu = run(seconds)
    total, growth = int(RATE * seconds), figures["memory"][-1] - figures["memory"][1]
    whole = sum(count == total for count in seen)
    print(
        f"watches: {figures['rate']:,.0f} events/s for {seconds:.0f} s, all in order at {whole} of {WATCHERS} "
        f"watchers; lab: {figures['cpu']:.0%} of a CPU, watchers: {cpu:.0%}; lab: {figures['memory'][-1]:.0f} MB, "
        f"{growth:+.1f} MB in the second half (goal: {RATE:,}/s, all, at most +{GROWTH:.0f} MB)"
    )
    return 0 if whole == WATCHERS and figures["rate"] > RATE * 0.99 and growth <= GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())

"""Does the lab bring 2,000 events a second to each of 10 watchers, and none lost or doubled? Is its memory bounded?

Run from the repository: ``python benchmarks/bench_watch.py [SECONDS]``, 60 by default. The watchers are this process,
the lab is another.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from urllib.parse import urlsplit

from lab_load import lab_load

RATE, WATCHERS = 2_000, 10
GROWTH = 20.0  # MB in the second half
PATH = "/api/v1/pods?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
SEQ = re.compile(rb'"seq":"(\d+)"')


async def watch(facts: dict, context: ssl.SSLContext, total: int, ready: asyncio.Event) -> int:
    """How many events came in their order before one was missing, doubled, or all were there.

    Bytes are searched as they come: an HTTP client would cost more than the lab that is measured.
    """
    server = urlsplit(facts["apiServer"])
    reader, writer = await asyncio.open_connection(server.hostname, server.port, ssl=context, limit=1 << 22)
    headers = f"Host: lab\r\nConnection: close\r\nAuthorization: Bearer {facts['token']}"
    writer.write(f"GET {PATH} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    ready.set()
    seen, rest = 0, b""
    while seen < total and (data := await reader.read(1 << 20)):
        data = rest + data
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        for found in SEQ.findall(data, 0, end):
            if int(found) != seen:
                return seen
            seen += 1
    writer.close()
    return seen


async def run(seconds: float) -> tuple[dict, list[int]]:
    loop = asyncio.get_running_loop()
    with lab_load(RATE, seconds) as (process, facts):
        context = ssl.create_default_context(cafile=facts["caFile"])
        events = [asyncio.Event() for _ in range(WATCHERS)]
        tasks = [asyncio.create_task(watch(facts, context, int(RATE * seconds), ready)) for ready in events]
        for ready in events:
            await ready.wait()
        await asyncio.sleep(0.5)
        process.stdin.write("go\n")
        process.stdin.flush()
        figures = json.loads(await loop.run_in_executor(None, process.stdout.readline))
        return figures, list(await asyncio.wait_for(asyncio.gather(*tasks), 60))


def main() -> int:
    """Print one line; exit code 1 if a goal is missed."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    figures, seen = asyncio.run(run(seconds))
    total, growth = int(RATE * seconds), figures["memory"][-1] - figures["memory"][1]
    whole = sum(count == total for count in seen)
    print(
        f"watches: {figures['rate']:,.0f} events/s for {seconds:.0f} s, all in order at {whole} of {WATCHERS} "
        f"watchers; lab: {figures['cpu']:.0%} of a CPU, {figures['memory'][-1]:.0f} MB, {growth:+.1f} MB in the "
        f"second half (goal: {RATE:,}/s, all, at most +{GROWTH:.0f} MB)"
    )
    return 0 if whole == WATCHERS and figures["rate"] > RATE * 0.99 and growth <= GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())

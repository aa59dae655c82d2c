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

import aiohttp
from lab_load import lab_load

RATE, WATCHERS = 2_000, 10
GROWTH = 20.0  # MB in the second half
PATH = "/api/v1/pods?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
SEQ = re.compile(rb'"seq":"(\d+)"')


async def watch(session: aiohttp.ClientSession, total: int, ready: asyncio.Event) -> int:
    """How many events came in their order before one was missing, doubled, or all were there."""
    seen, rest = 0, b""
    async with session.get(
        "/api/v1/pods?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    ) as answer:
        ready.set()
        while seen < total:
            data = await answer.content.readany()
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                found = SEQ.search(line)
                if found is None:
                    continue
                if int(found[1]) != seen:
                    return seen
                seen += 1
    return seen


async def run(seconds: float) -> tuple[dict, list[int]]:
    loop = asyncio.get_running_loop()
    with lab_load(RATE, seconds) as (process, facts):
        context = ssl.create_default_context(cafile=facts["caFile"])
        headers = {"Authorization": f"Bearer {facts['token']}"}
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=30)
        async with aiohttp.ClientSession(
            facts["apiServer"], headers=headers, connector=connector, timeout=timeout, read_bufsize=1 << 20
        ) as session:
            events = [asyncio.Event() for _ in range(WATCHERS)]
            tasks = [asyncio.create_task(watch(session, int(RATE * seconds), ready)) for ready in events]
            for ready in events:
                await ready.wait()
            await asyncio.sleep(0.5)
            process.stdin.write("go\n")
            process.stdin.flush()
            figures = json.loads(await loop.run_in_executor(None, process.stdout.readline))
            return figures, list(await asyncio.gather(*tasks))


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

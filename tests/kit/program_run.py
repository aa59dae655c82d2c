"""One program of a simulated host, run in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

Write = Callable[[str], None]
ReadLine = Callable[[], Awaitable[str]]
WALL = 10  # seconds


def run_program(play: Callable[[Write, Write, ReadLine], Awaitable[int]], stdin: str = "") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``play``, which gets both outputs and the lines of ``stdin``."""
    out: list[str] = []
    err: list[str] = []
    lines = iter(stdin.splitlines(keepends=True))

    async def read_line() -> str:
        return next(lines, "")

    async def run() -> int:
        return await asyncio.wait_for(play(out.append, err.append, read_line), WALL)

    return asyncio.run(run()), "".join(out), "".join(err)

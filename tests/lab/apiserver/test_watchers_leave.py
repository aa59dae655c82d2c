"""Watchers that disconnect or do not read, in process."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from chaos.lab.server.content import ServeOptions
from chaos.lab.server.lab import Lab
from chaos.lab.spec import LabSpec, NodeSpec

pytestmark = pytest.mark.lab
MAPS = "/api/v1/namespaces/default/configmaps"
Scene = Callable[[Lab, aiohttp.ClientSession], Awaitable[None]]


def play(directory: Path, scene: Scene) -> None:
    """Run ``scene`` with a lab of one node and a client that is logged in."""

    async def run() -> None:
        lab = Lab(LabSpec(nodes=[NodeSpec(name="only")]), ServeOptions(), directory)
        try:
            facts = await lab.start()
            context = ssl.create_default_context(cafile=facts["caFile"])
            headers = {"Authorization": f"Bearer {facts['token']}"}
            connector = aiohttp.TCPConnector(ssl=context, limit=0)
            async with aiohttp.ClientSession(facts["apiServer"], headers=headers, connector=connector) as client:
                await scene(lab, client)
            assert lab.failure() is None
        finally:
            await lab.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


def test_a_watcher_that_disconnects_is_removed(tmp_path: Path) -> None:
    async def scene(lab: Lab, client: aiohttp.ClientSession) -> None:
        watches = [await client.get(f"{MAPS}?watch=true") for _ in range(3)]
        await until(lambda: lab.watch_count == 3)
        for watch in watches:
            watch.close()
        await until(lambda: lab.watch_count == 0)

    play(tmp_path, scene)


def test_a_watcher_that_does_not_read_is_dropped_and_the_others_are_served(tmp_path: Path) -> None:
    async def scene(lab: Lab, client: aiohttp.ClientSession) -> None:
        slow = await client.get(f"{MAPS}?watch=true")
        quick = await client.get(f"{MAPS}?watch=true")
        await until(lambda: lab.watch_count == 2)
        seen = 0

        async def read() -> None:
            nonlocal seen
            while True:
                seen += (await quick.content.readany()).count(b'"type":"')

        reader = asyncio.create_task(read())
        body: dict[str, Any] = {"metadata": {"name": "big"}, "data": {"x": "y" * 500_000}}
        changes = 0
        async with client.post(MAPS, json=body) as answer:
            assert answer.status == 201
        while lab.watch_count == 2:
            changes += 1
            assert changes < 100, "no watcher was dropped"
            body["data"]["n"] = str(changes)
            async with client.put(f"{MAPS}/big", json=body) as answer:
                assert answer.status == 200
        await until(lambda: seen == changes + 1)
        assert lab.watch_count == 1
        reader.cancel()
        slow.close()
        quick.close()

    play(tmp_path, scene)

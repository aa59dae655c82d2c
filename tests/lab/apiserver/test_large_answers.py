"""Large answers are written in pieces; clients see one body of known length."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from chaos.lab.http.messages import json_response


@pytest.mark.parametrize("size", [10, (1 << 22) - 20, 5_000_001])
def test_a_body_arrives_whole_and_with_its_length(size: int) -> None:
    body = {"text": "x" * size, "end": "y"}

    async def answer(_request: web.Request) -> web.Response:
        return json_response(body)

    async def ask() -> None:
        app = web.Application()
        app.router.add_get("/", answer)
        async with TestClient(TestServer(app)) as client, client.get("/") as response:
            assert response.headers["Content-Type"] == "application/json"
            assert int(response.headers["Content-Length"]) == len(await response.read())
            assert await response.json() == body

    asyncio.run(ask())

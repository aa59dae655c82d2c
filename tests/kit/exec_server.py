"""A stand-in for an API server with one node: its pods are names, and exec runs real programs of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from chaos.cluster.access import Access, Pem
from chaos.cluster.client import ApiClient
from chaos.cluster.kubeconfig import UserEntry
from chaos.lab.http.pod_exec import V4, V5, exit_status
from tests.kit.tls_authority import Authority

_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
Document = dict[str, Any]


@dataclass
class ExecServer:
    """``protocols`` of exec. ``pods`` by name; ``status`` is that of new ones. ``refusal``: to creating one.

    ``exec_error``: what arrives instead of a program's end. ``kubelet_refusal``: in plain text, as a
    kubelet answers. ``ready``: the condition of the node, ``room``: how many pods it may have.
    """

    protocols: tuple[str, ...] = (V5, V4)
    pods: dict[str, Document] = field(default_factory=dict)
    status: Document = field(default_factory=lambda: dict(READY))
    refusal: tuple[int, str] | None = None
    exec_error: str = ""
    flood: list[int] = field(default_factory=list)  # sizes of the fragments of a message that comes first
    exec_refusal: tuple[int, str] | None = None
    kubelet_refusal: tuple[int, str] | None = None
    ready: str = "True"
    room: int = 110
    requests: list[str] = field(default_factory=list)
    programs: list[asyncio.subprocess.Process] = field(default_factory=list)
    url: str = ""
    ca: bytes = b""
    _sockets: list[web.Request] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 20)
        path = "/api/v1/namespaces/{namespace}/pods"
        app.router.add_routes(
            [
                web.get("/api/v1/nodes/{name}", self._node),
                web.get("/api/v1/pods", self._list),
                web.post(path, self._create),
                web.get(path, self._list),
                web.get(f"{path}/{{name}}", self._get),
                web.delete(f"{path}/{{name}}", self._delete),
                web.get(f"{path}/{{name}}/exec", self._exec),
            ]
        )
        return app

    def cut(self) -> None:
        """Break every exec connection."""
        done = threading.Event()

        def abort() -> None:
            for request in list(self._sockets):
                if request.transport:
                    request.transport.abort()
            done.set()

        self._loop.call_soon_threadsafe(abort)
        assert done.wait(10)

    def client(self) -> ApiClient:
        return ApiClient(lambda: Access(self.url, ca=Pem("ca", data=self.ca), user=UserEntry(token="secret")))

    async def _node(self, _: web.Request) -> web.Response:
        address = {"type": "InternalIP", "address": "10.0.0.1"}
        condition = {"type": "Ready", "status": self.ready}
        status = {"addresses": [address], "conditions": [condition], "allocatable": {"pods": str(self.room)}}
        return web.json_response({"status": status})

    async def _create(self, request: web.Request) -> web.Response:
        pod: Document = await request.json()
        self.requests.append(f"create {pod['spec']['nodeName']}")
        if self.refusal:
            return web.json_response({"message": self.refusal[1]}, status=self.refusal[0])
        name = f"{pod['metadata'].pop('generateName')}{len(self.requests)}"
        pod["metadata"] |= {"name": name, "uid": f"uid-{name}"}
        self.pods[name] = pod | {"status": self.status}
        return web.json_response(self.pods[name], status=201)

    async def _list(self, request: web.Request) -> web.Response:
        selector = request.query.get("labelSelector", "")
        wanted = dict(text.split("=") for text in selector.split(",")) if selector else {}
        items = [pod for pod in self.pods.values() if wanted.items() <= pod["metadata"]["labels"].items()]
        return web.json_response({"items": items})

    async def _get(self, request: web.Request) -> web.Response:
        found = self.pods.get(request.match_info["name"])
        return web.json_response(found or {"message": "not found"}, status=200 if found else 404)

    async def _delete(self, request: web.Request) -> web.Response:
        self.requests.append(f"delete {request.match_info['name']}")
        found = self.pods.pop(request.match_info["name"], None)
        return web.json_response(found or {"message": "not found"}, status=200 if found else 404)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        self.requests.append("exec")
        assert request.headers["Authorization"] == "Bearer secret"
        if request.match_info["name"] not in self.pods:
            return web.json_response({"message": "pods not found"}, status=404)
        if self.exec_refusal:
            return web.json_response({"message": self.exec_refusal[1]}, status=self.exec_refusal[0])
        if self.kubelet_refusal:
            return web.Response(text=self.kubelet_refusal[1], status=self.kubelet_refusal[0])
        socket = web.WebSocketResponse(protocols=self.protocols, max_msg_size=0)
        await socket.prepare(request)
        self._sockets.append(request)
        try:
            if self.flood:
                await _send_parts(socket, self.flood)
            if self.exec_error:
                status = {"status": "Failure", "reason": "InternalError", "message": self.exec_error}
                await socket.send_bytes(bytes([_ERROR]) + msgspec.json.encode(status))
            else:
                argv = request.query.getall("command")
                await self._run(socket, argv[argv.index("--") + 1 :])
            await socket.close()
        finally:
            self._sockets.remove(request)
        return socket

    async def _run(self, socket: web.WebSocketResponse, argv: list[str]) -> None:
        """As containerd: the status comes when the outputs are closed; a lost client is the end of the input alone."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self.programs.append(process)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        feed = asyncio.create_task(_feed(socket, process.stdin))
        try:
            await asyncio.gather(_copy(socket, process.stdout, _STDOUT), _copy(socket, process.stderr, _STDERR))
            code = await process.wait()
            await socket.send_bytes(
                bytes([_ERROR]) + msgspec.json.encode(exit_status(code if code >= 0 else 128 - code))
            )
        except ConnectionError:
            return
        finally:
            feed.cancel()
            with suppress(ConnectionError):
                process.stdin.close()

    async def stop(self) -> None:
        """End the programs that still run."""
        for program in self.programs:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            await program.wait()
            program._transport.close()  # type: ignore[attr-defined]  # pipes that other processes have open
        await asyncio.sleep(0.05)


async def _send_parts(socket: web.WebSocketResponse, sizes: list[int]) -> None:
    """One message in fragments, each in clear frames of our own."""
    transport = socket._req.transport  # type: ignore[union-attr]
    for number, size in enumerate(sizes):
        head = (0x80 if number == len(sizes) - 1 else 0) | (0 if number else 2)
        transport.write(bytes([head, 127]) + size.to_bytes(8) + bytes([_STDERR]) + b"x" * (size - 1))  # type: ignore[union-attr]
        await asyncio.sleep(0)


async def _copy(socket: web.WebSocketResponse, stream: asyncio.StreamReader, channel: int) -> None:
    while data := await stream.read(8192):
        await socket.send_bytes(bytes([channel]) + data)


async def _feed(socket: web.WebSocketResponse, stdin: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[:1] == bytes([_STDIN]):
                stdin.write(message.data[1:])
                await stdin.drain()
            elif message.data == bytes([_CLOSE, _STDIN]) and socket.ws_protocol == V5:
                stdin.close()
    stdin.close()


@contextmanager
def exec_server(*protocols: str) -> Iterator[ExecServer]:
    """A server in its own thread."""
    server = ExecServer(protocols or (V5, V4))
    thread = threading.Thread(target=server._loop.run_forever, daemon=True)
    thread.start()

    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder), "cluster")
        tls, server.ca = authority.server(), authority.file.read_bytes()

    async def start() -> web.AppRunner:
        runner = web.AppRunner(server.app(), handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        server.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), server._loop).result(10)
    try:
        yield server
    finally:
        for end in (runner.cleanup(), server.stop()):
            asyncio.run_coroutine_threadsafe(end, server._loop).result(10)
        server._loop.call_soon_threadsafe(server._loop.stop)
        thread.join(10)

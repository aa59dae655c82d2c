"""pods/exec over WebSocket, in the subprotocols v5.channel.k8s.io and v4.channel.k8s.io.

k8s.io/apimachinery/pkg/util/remotecommand (protocols), k8s.io/streaming (channels 0 to 3, 255 closes one in v5),
k8s.io/apimachinery/pkg/util/proxy streamtranslator.go (an error of the kubelet arrives in channel 3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from chaos.lab.apiserver.http.errors import ApiError
from chaos.lab.apiserver.http.messages import Request, get_object
from chaos.lab.apiserver.http.resources import RequestInfo
from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.pod_exec import ExecError, ExecTarget, PodExec, Streams
from chaos.lab.hostshell.process import HostSystem
from chaos.lab.node.machine import Machine
from chaos.lab.sim.lockstep import Waits

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_LINE_LIMIT = 64 << 20  # bytes of one line of stdin
_SUCCESS = {"metadata": {}, "status": "Success"}


class PodExecHandler:
    """Serves exec requests of aiohttp; in a lab without connections, programs are run by call."""

    def __init__(self, cluster: Cluster, waits: Waits, hosts: Mapping[str, HostSystem]) -> None:
        self._cluster, self.waits = cluster, waits
        self.exec = PodExec(cluster, waits, hosts)
        self.tasks: set[asyncio.Task[dict[str, Any]]] = set()

    async def serve(self, request: Request, info: RequestInfo) -> web.StreamResponse:
        """Run a program until it ends, or its kubelet or container does; then the connection breaks."""
        target = self.exec.target(get_object(self._cluster, info), request.query.get("container", ""))
        if not any(request.query.get(name) in ("true", "1") for name in ("stdin", "stdout", "stderr", "tty")):
            raise ApiError(400, "you must specify at least 1 of stdin, stdout, stderr")
        socket = web.WebSocketResponse(protocols=(V5, V4))
        if not isinstance(request, web.Request) or not socket.can_prepare(request).ok:
            raise ApiError(400, "Upgrade request required")
        argv = request.query.getall("command", [])
        if V5 not in request.headers.get("Sec-WebSocket-Protocol", ""):
            try:
                await self.exec.dial(target)  # without a translator, the kubelet itself upgrades the connection
            except ExecError as error:
                raise ApiError(500, str(error)) from error
        await socket.prepare(request)
        await _Exchange(self, request, socket, target).run(argv)
        return socket


class _Exchange:
    """One program on one connection."""

    def __init__(
        self, server: PodExecHandler, request: web.Request, socket: web.WebSocketResponse, target: ExecTarget
    ) -> None:
        self._exec, self._waits, self._tasks = server.exec, server.waits, server.tasks
        self._request, self._socket, self._target = request, socket, target
        self._stdin = asyncio.StreamReader(limit=_LINE_LIMIT)
        self._output: asyncio.Queue[bytes] = asyncio.Queue()
        self._cut = asyncio.Event()

    async def run(self, argv: list[str]) -> None:
        loop = asyncio.get_running_loop()
        program = loop.create_task(self._run_program(argv))
        self._waits.hold_for_new_tasks()
        self._tasks.add(program)
        program.add_done_callback(self._tasks.discard)
        others = [loop.create_task(each) for each in (self._receive(), self._send(), self._cut.wait())]
        machine = self._target.machine
        machine.on_change.append(self._on_machine_change)
        try:
            with self._waits.suspend_request():
                await asyncio.wait({program, others[0], others[2]}, return_when=asyncio.FIRST_COMPLETED)
                await self._end(program)
        finally:
            machine.on_change.remove(self._on_machine_change)
            self._stdin.feed_eof()  # a program that was started goes on; one that waits for input ends
            for task in others:
                task.cancel()

    async def _end(self, program: asyncio.Task[dict[str, Any]]) -> None:
        """Send the status of a program that has ended; one whose kubelet or container is gone has none."""
        if self._cut.is_set() or not program.done():
            program.cancel()
            self._abort()
            return
        self._output.put_nowait(bytes([_ERROR]) + msgspec.json.encode(program.result()))
        await self._output.join()
        await self._socket.close()

    def _abort(self) -> None:
        if self._request.transport:
            self._request.transport.abort()

    def _on_machine_change(self, machine: Machine) -> None:
        if not machine.kubelet.is_running:
            self._cut.set()

    async def _run_program(self, argv: list[str]) -> dict[str, Any]:
        """The status at its end."""
        with self._waits.request():
            try:
                await self._exec.dial(self._target)
                code = await self._exec.run(self._target, argv, self._streams())
            except ExecError as error:
                return ApiError(500, f"Internal error occurred: {error}").status()
            if not self._target.is_running:
                self._cut.set()
            return exit_status(code)

    def _streams(self) -> Streams:
        def write(channel: int, text: str) -> None:
            self._output.put_nowait(bytes([channel]) + text.encode("utf-8", "replace"))

        async def read_line() -> str:
            with self._waits.suspend_request():
                return (await self._stdin.readline()).decode("utf-8", "replace")

        return Streams(lambda text: write(_STDOUT, text), lambda text: write(_STDERR, text), read_line)

    async def _send(self) -> None:
        while True:
            data = await self._output.get()
            await self._socket.send_bytes(data)
            self._output.task_done()

    async def _receive(self) -> None:
        async for message in self._socket:
            data = message.data.encode() if message.type is WSMsgType.TEXT else message.data
            if data[:1] == bytes([_STDIN]):
                self._stdin.feed_data(data[1:])
            elif data == bytes([_CLOSE, _STDIN]) and self._socket.ws_protocol == V5:
                self._stdin.feed_eof()


def exit_status(code: int) -> dict[str, Any]:
    """The Status in channel 3. k8s.io/apimachinery/pkg/util/remotecommand, NonZeroExitCodeReason."""
    if code == 0:
        return _SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        "code": 500,
    }

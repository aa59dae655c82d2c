"""pods/exec: programs in containers, through the kubelet of their node; of programs the lab has nsenter alone.

pkg/registry/core/pod/strategy.go ExecLocation, pkg/kubelet/server/server.go getExec, util-linux nsenter(1),
k8s.io/apimachinery/pkg/util/remotecommand (protocols), k8s.io/streaming (channels 0 to 3, 255 closes one in v5),
k8s.io/apimachinery/pkg/util/proxy streamtranslator.go (an error of the kubelet arrives in channel 3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, Process
from chaos.lab.hostshell.shell import execute
from chaos.lab.http.errors import ApiError, not_found
from chaos.lab.http.messages import Request, get_object
from chaos.lab.http.resources import RequestInfo
from chaos.lab.node.machine import Machine
from chaos.lab.objects import Object, node_of, uid_of
from chaos.lab.sim.lockstep import Waits

KUBELET_PORT = 10250  # in messages
_NO_ROUTE_TIMEOUT = 3.0  # seconds in which Linux tries to resolve the hardware address of a host that is off
_DIAL_TIMEOUT = 30.0  # the proxy transport's dialer, k8s.io/apimachinery/pkg/util/net
_FROZEN_POLL = 0.1  # seconds between two looks at a kubelet that does not respond
_NO_RUNTIME = (
    'error sending request: rpc error: code = Unavailable desc = connection error: desc = "transport: Error while '
    'dialing: dial unix /run/containerd/containerd.sock: connect: connection refused"'
)
_NAMESPACES = frozenset("muinpCT")  # options of nsenter that name a namespace


class ExecError(Exception):
    """Nothing was run; the message is that of a Status with reason InternalError."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a container cannot be reached, which shows after ``seconds``."""

    seconds: float
    message: str


@dataclass(frozen=True, slots=True)
class ExecTarget:
    """A container of a pod on a machine, as the pod's spec has it."""

    machine: Machine
    host: HostSystem
    uid: str
    container: str
    is_privileged: bool
    has_host_pid: bool

    @property
    def is_running(self) -> bool:
        """Whether the kubelet runs, and the container too."""
        containers = self.machine.runtime.containers(self.uid)
        return self.machine.kubelet.is_running and any(
            each.name == self.container and each.state == "running" for each in containers
        )


@dataclass(frozen=True, slots=True)
class Streams:
    """Standard streams of a program; ``read_line`` returns the rest, or "", at the end of input."""

    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], Awaitable[str]]


class PodExec:
    """``hosts``: what programs see of the machines with Linux, by node."""

    def __init__(self, cluster: Cluster, waits: Waits, hosts: Mapping[str, HostSystem]) -> None:
        self._sim, self._store, self._waits, self._hosts = cluster.sim, cluster.store, waits, hosts

    def target(self, pod: Object, container: str) -> ExecTarget:
        """The container of that name, "" for the only one. Raises ApiError 400, 404 and 501."""
        name, containers = pod["metadata"]["name"], pod["spec"]["containers"]
        if not container and len(containers) > 1:
            names = " ".join(item["name"] for item in containers)
            raise ApiError(400, f"a container name must be specified for pod {name}, choose one of: [{names}]")
        found = next((item for item in containers if item["name"] == (container or containers[0]["name"])), None)
        if found is None:
            raise ApiError(400, f"container {container} is not valid for pod {name}")
        if not node_of(pod):
            raise ApiError(400, f"pod {name} does not have a host assigned")
        if self._store.get("nodes", "", node_of(pod)) is None:  # it has the kubelet's address
            raise not_found("nodes", node_of(pod))
        host = self._hosts.get(node_of(pod))
        if host is None:
            raise ApiError(501, f"the lab simulates no exec on {node_of(pod)}")
        is_privileged = bool((found.get("securityContext") or {}).get("privileged"))
        return ExecTarget(
            host.machine, host, uid_of(pod), found["name"], is_privileged, bool(pod["spec"].get("hostPID"))
        )

    async def dial(self, target: ExecTarget) -> None:
        """Reach the container through its kubelet. Raises ExecError."""
        while target.machine.kubelet.is_running and target.machine.kubelet.is_frozen:
            await self._waits.wait_until(self._sim.now + _FROZEN_POLL)
        if found := obstacle(target):
            await self._waits.wait_until(self._sim.now + found.seconds)
            raise ExecError(found.message)

    async def run(self, target: ExecTarget, argv: list[str], streams: Streams) -> int:
        """The exit code of the program. Raises ExecError for one that the image does not have."""
        if not argv or argv[0].rpartition("/")[2] != "nsenter":
            name = argv[0] if argv else ""
            raise ExecError(
                "error executing command in container: failed to exec in container: failed to start exec: OCI runtime "
                f'exec failed: exec failed: unable to start container process: exec: "{name}": executable file not '
                "found in $PATH: unknown"
            )
        process = Process(target.host, "root", streams.out, streams.err, streams.read_line)
        pid, inner = _parse_nsenter(argv[1:])
        if pid != "1" or not inner:
            return process.fail("nsenter: the lab simulates only a program in the namespaces of PID 1")
        if not target.has_host_pid:
            return process.fail("nsenter: the lab simulates only the PID 1 of the host, which needs hostPID")
        if not target.is_privileged:
            return process.fail("nsenter: can't open '/proc/1/ns/ipc': Permission denied")
        return await execute(process, inner, "nsenter")


def obstacle(target: ExecTarget) -> Obstacle | None:
    """Why the container cannot be reached, None if it can; a frozen kubelet does not answer at all."""
    machine = target.machine
    address = f"{machine.network.resolve(machine.name)[machine.network.families[0]]}:{KUBELET_PORT}"
    dial = f"error dialing backend: dial tcp {address}"
    if machine.state == "off":
        return Obstacle(_NO_ROUTE_TIMEOUT, f"{dial}: connect: no route to host")
    if not machine.network.can_reach_kubelet():
        return Obstacle(_DIAL_TIMEOUT, f"{dial}: i/o timeout")
    if not machine.kubelet.is_running:
        return Obstacle(0.0, f"{dial}: connect: connection refused")
    if machine.kubelet.is_frozen:
        return Obstacle(_DIAL_TIMEOUT, "no answer of the kubelet")
    if not machine.runtime.is_available:
        return Obstacle(0.0, _NO_RUNTIME)
    missing = f'unable to upgrade connection: container not found ("{target.container}")'
    return None if target.is_running else Obstacle(0.0, missing)


def _parse_nsenter(words: list[str]) -> tuple[str, list[str]]:
    """The process whose namespaces are entered, "" if none is named, and the program."""
    pid, index = "", 0
    while index < len(words) and words[index].startswith("-"):
        word = words[index]
        index += 1
        if word == "--":
            break
        if word in ("-t", "--target") and index < len(words):
            pid = words[index]
            index += 1
        elif word.startswith("--") or not _NAMESPACES.issuperset(word[1:]):
            return "", []
    return pid, words[index:]


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
            self._stdin.feed_eof()  # a program that was started continues; one that waits for input ends
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

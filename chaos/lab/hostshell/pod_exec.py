"""Programs in containers of pods, through the kubelet of their node; of programs the lab has nsenter alone.

pkg/registry/core/pod/strategy.go ExecLocation, pkg/kubelet/server/server.go getExec, util-linux nsenter(1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from chaos.lab.apiserver.http.errors import ApiError, not_found
from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, Process
from chaos.lab.hostshell.shell import execute
from chaos.lab.node.machine import Machine
from chaos.lab.objects.accessors import Object, node_of, uid_of
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

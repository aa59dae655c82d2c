"""A simulated machine as its sshd serves it, without a connection: the same shell and programs.

A whole lab in the process of its client, who moves its time: requests and programs by call.
"""

from __future__ import annotations

import base64
import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from chaos.lab.apiserver.store import Listener
from chaos.lab.bmc import ROOT, RedfishServer
from chaos.lab.cluster import Cluster
from chaos.lab.direct.requests import Answer, DirectServer, Watcher
from chaos.lab.direct.tasks import Cancelled, SimWaits, Task
from chaos.lab.hostshell.process import HostSystem, Process, discard, no_input
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell, execute
from chaos.lab.http.access import Access, Attributes
from chaos.lab.http.api import ApiServer
from chaos.lab.http.component_ports import ControllerManagerServer, KubeletEndpoints
from chaos.lab.http.errors import not_found
from chaos.lab.http.pod_exec import ExecError, ExecTarget, PodExec, Streams, obstacle
from chaos.lab.http.resources import RESOURCES
from chaos.lab.node.machine import Machine
from chaos.lab.objects import Object
from chaos.lab.sim import SimClock
from chaos.lab.spec import LabSpec

_ENVIRONMENT = {"SSH_CONNECTION": "127.0.0.1 40000 127.0.0.1 22"}  # the client is on loopback, as of a lab's process


class DirectProgram:
    """A program that a client runs. ``is_lost``: the machine went down before the program's end was reported."""

    def __init__(self, make: Callable[[DirectProgram], Coroutine[Any, Any, int]], began: float) -> None:
        self.began = began
        self.is_lost = False
        self._out: list[str] = []
        self._err: list[str] = []
        self.task: Task[int] = Task(make(self))

    @property
    def stdout(self) -> str:
        return "".join(self._out)

    @property
    def stderr(self) -> str:
        return "".join(self._err)

    def write_out(self, text: str) -> None:
        self._out.append(text)

    def write_err(self, text: str) -> None:
        self._err.append(text)


class DirectHost:
    """``host_key``: as an SSH client shows it. ``boot``: number of times the machine became unreachable."""

    def __init__(self, machine: Machine, sim: SimClock, user: str, seed: int) -> None:
        self.machine, self.user, self.boot = machine, user, 0
        self._seed = seed
        self._sim = sim
        self._tasks: set[Task[int]] = set()
        self._programs: list[DirectProgram] = []
        self._was_reachable = machine.is_reachable
        machine.on_change.append(self._on_machine_change)

    @property
    def host_key(self) -> str:
        digest = hashlib.sha256(f"host key of {self._seed}/{self.machine.host_key_owner}".encode()).digest()
        return f"ssh-ed25519 SHA256:{b64encode(digest).decode().rstrip('=')}"

    @property
    def is_reachable(self) -> bool:
        return self.machine.is_reachable

    def run(self, line: str, stdin: str) -> DirectProgram:
        """Run ``line`` in the login shell of a machine that is reachable."""
        return self.start(lambda program: self._execute(program, line, stdin))

    def start(self, make: Callable[[DirectProgram], Coroutine[Any, Any, int]]) -> DirectProgram:
        """Start a program, which ends with its machine."""
        boot = self.boot
        program = DirectProgram(make, self._sim.now)
        if self.boot != boot:  # the program itself took the machine down
            program.is_lost = True
            program.task.cancel()
        elif not program.task.done:
            self._programs.append(program)
            program.task.add_done_callback(lambda _: self._programs.remove(program))
            self._track(program.task)
        return program

    async def _execute(self, program: DirectProgram, line: str, stdin: str) -> int:
        """The exit code of ``line`` in the login shell."""
        raise NotImplementedError

    def _on_machine_change(self, machine: Machine) -> None:
        if self._was_reachable and not machine.is_reachable:
            self.boot += 1
            for program in self._programs:
                program.is_lost = True
            for task in list(self._tasks):
                task.cancel()
            self._lose_power()
        self._was_reachable = machine.is_reachable

    def _lose_power(self) -> None:
        """Forget what does not survive the end of all programs."""

    def _track(self, task: Task[int]) -> Task[int]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def line_reader(stdin: str) -> Callable[[], Awaitable[str]]:
    """Returns the next line of ``stdin``, or "" at its end."""
    lines = iter(stdin.splitlines(keepends=True))

    async def read_line() -> str:
        return next(lines, "")

    return read_line


class LinuxHost(DirectHost):
    """Programs run in bash, timers as root."""

    def __init__(self, machine: Machine, sim: SimClock, user: str, seed: int) -> None:
        super().__init__(machine, sim, user, seed)
        self.system = HostSystem(
            machine,
            sim,
            SimWaits(sim),
            self._run_as_root,
            PROGRAMS,
            start_job=lambda program: self._track(Task(program)),
        )

    async def _execute(self, program: DirectProgram, line: str, stdin: str) -> int:
        process = Process(
            self.system, self.user, program.write_out, program.write_err, line_reader(stdin), dict(_ENVIRONMENT)
        )
        return await Shell(process, ["bash"], bash=True).run(line)

    def _lose_power(self) -> None:
        self.system.lose_power()

    def _run_as_root(self, argv: list[str]) -> None:
        """Run the command of a timer now."""
        process = Process(self.system, "root", discard, discard, no_input)
        self._sim.after(0.0, partial(self._start, process, argv))

    def _start(self, process: Process, argv: list[str]) -> None:
        self._track(Task(execute(process, argv, "systemd"))).add_done_callback(_raise_failure)


def _raise_failure(task: Task[int]) -> None:
    """Raise what a program without a client ended with, unless its machine went down."""
    with suppress(Cancelled):
        task.result()


SSH_USER, BMC_USER, _BMC_PASSWORD = "chaos", "ops", "simulated"
_WATCH_CACHE = 1000  # changes per resource, for lists at an earlier version
_FROZEN_POLL = 0.1  # simulated seconds between two looks at a kubelet that does not respond
_SHOWN = {resource.plural: resource for resource in RESOURCES.values()}


class DirectLab:
    """The client moves the time by ``sim.run_until``. No request and no program takes time by itself."""

    def __init__(self, spec: LabSpec) -> None:
        self.cluster = Cluster(spec)
        self.sim: SimClock = self.cluster.sim
        self.access = Access(spec.users)
        waits = SimWaits(self.sim)
        self._controllers = DirectServer(ControllerManagerServer(self.cluster.controllers, waits, self.access))
        self._bmc = DirectServer(RedfishServer(self.cluster.machines, waits, BMC_USER, _BMC_PASSWORD))
        self._waits = waits
        self.hosts = {
            name: _host_class(machine)(machine, self.sim, SSH_USER, spec.seed)
            for name, machine in self.cluster.machines.items()
        }
        systems = {name: host.system for name, host in self.hosts.items() if isinstance(host, LinuxHost)}
        self._api = DirectServer(ApiServer(self.cluster, waits, self.access, _WATCH_CACHE, systems))
        self._exec = PodExec(self.cluster, waits, systems)
        self._kubelets = [(machine, _Kubelet(machine, self.access)) for machine in self.cluster.machines.values()]

    def start(self, start: Callable[[Cluster], None] = Cluster.start) -> None:
        """Start the cluster, by ``start``, and let it settle."""
        start(self.cluster)
        self.cluster.warm_up()

    @property
    def token(self) -> str:
        """Of the user with limited permissions if there is one, else of the administrator."""
        return self.access.users[1 if len(self.access.users) > 1 else 0].token

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        query: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        content_type: str = "application/json",
    ) -> Task[Answer]:
        """A request to the API server."""
        return Task(self._api.send(method, target, headers, query, body, content_type))

    def watch(self, target: str, headers: Mapping[str, str], watcher: Watcher) -> Task[Answer]:
        """A watch of the API server; it lasts until its task is done or cancelled. One that is refused is done."""
        return Task(self._api.send("GET", target, headers, watcher=watcher))

    def exec(self, namespace: str, name: str, argv: Sequence[str], stdin: str) -> DirectProgram:
        """Run a program in the only container of a pod, with no time for the connection. Raises ApiError, ExecError."""
        for verb in ("get", "create"):
            attributes = Attributes(verb, "", "pods/exec", namespace, name)
            self.access.authorize(self.access.authenticate(f"Bearer {self.token}"), attributes)
        pod = self.cluster.store.get("pods", namespace, name)
        if pod is None:
            raise not_found("pods", name)
        target = self._exec.target(pod, "")
        if found := obstacle(target):
            raise ExecError(found.message)
        return self.hosts[target.machine.name].start(lambda program: self._run(target, program, list(argv), stdin))

    async def _run(self, target: ExecTarget, program: DirectProgram, argv: list[str], stdin: str) -> int:
        """A program whose kubelet or container ends meanwhile has no known result."""
        streams = Streams(program.write_out, program.write_err, line_reader(stdin))
        code = await self._exec.run(target, argv, streams)
        program.is_lost = program.is_lost or not target.is_running
        return code

    def read_controllers(self, path: str, headers: Mapping[str, str]) -> Task[Answer]:
        """GET from the port of kube-controller-manager."""
        return Task(self._controllers.send("GET", path, headers))

    def read_kubelet(self, address: str, port: int, path: str, headers: Mapping[str, str]) -> Task[Answer] | None:
        """GET from the port of a kubelet; None if nothing listens there. A frozen kubelet answers when it goes on."""
        for machine, kubelet in self._kubelets:
            if (machine.address, machine.kubelet_port) == (address, port) and machine.kubelet.is_running:
                return Task(self._ask_kubelet(kubelet, path, headers))
        return None

    async def _ask_kubelet(self, kubelet: _Kubelet, path: str, headers: Mapping[str, str]) -> Answer:
        while not kubelet.endpoints.is_responsive:
            await self._waits.wait_until(self.sim.now + _FROZEN_POLL)
        return await kubelet.server.send("GET", path, headers)

    def send_to_bmc(self, method: str, path: str, body: bytes = b"") -> Task[Answer]:
        """A request to the Redfish service, as its one user."""
        login = base64.b64encode(f"{BMC_USER}:{_BMC_PASSWORD}".encode()).decode()
        return Task(self._bmc.send(method, path, {"Authorization": f"Basic {login}"}, body=body))

    @staticmethod
    def bmc_path(node: str) -> str:
        """Path of the ComputerSystem of a node."""
        return f"{ROOT}/Systems/{node}"

    def objects(self, plural: str) -> list[Object]:
        """All objects of a resource as clients see them."""
        resource = _SHOWN[plural]
        return [resource.show(obj) for obj in self.cluster.store.list(plural)]

    def subscribe(self, call: Listener, *plurals: str) -> None:
        """Call ``call`` with every change of these resources, at once and in order."""
        self.cluster.store.subscribe(call, *plurals)


def _host_class(machine: Machine) -> type[DirectHost]:
    """Class by operating system. The code of Windows is imported only for a lab that has such a node."""
    if machine.os == "linux":
        return LinuxHost
    from chaos.lab.direct.windows_host import WindowsHost  # noqa: PLC0415

    return WindowsHost


class _Kubelet:
    def __init__(self, machine: Machine, access: Access) -> None:
        self.endpoints = KubeletEndpoints(machine, access)
        self.server = DirectServer(self.endpoints)

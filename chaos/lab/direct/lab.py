"""A whole lab in the process of its client, who moves its time: requests and programs by call."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence

from chaos.lab.apiserver.store import Listener
from chaos.lab.bmc import ROOT, RedfishServer, power_switches
from chaos.lab.cluster import Cluster
from chaos.lab.direct.host import DirectHost, DirectProgram, LinuxHost, SimWaits, Task, line_reader
from chaos.lab.direct.requests import Answer, DirectServer, Watcher
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
        self.switches = power_switches(self.cluster.machines.values(), lie=spec.power_lies)
        self._bmc = DirectServer(RedfishServer(self.switches, waits, BMC_USER, _BMC_PASSWORD))
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
        """The token of the user with limited permissions if there is one, otherwise of the administrator."""
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
        """GET from the port of a kubelet; None if nothing listens there. A frozen kubelet answers when it continues."""
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

"""All servers of a lab, and the files with which clients connect to it."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import asyncssh
import msgspec
from aiohttp import web

from chaos.lab.bmc import ROOT, RedfishServer, power_switches
from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.ssh import SshServer
from chaos.lab.http.access import Access, User
from chaos.lab.http.api import ApiServer
from chaos.lab.http.component_ports import ControllerManagerServer, KubeletServer
from chaos.lab.node.machine import Machine
from chaos.lab.node.network import addresses_of
from chaos.lab.server.content import LabAuthority, ServeOptions, write_private
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.sim.time_source import LOOPBACK, PortReservation, TimeSource
from chaos.lab.spec import ApiMisbehaviour, LabSpec, NodeAddress, NodeSpec

if TYPE_CHECKING:
    from chaos.lab.server.windows_hosts import WindowsHosts

SSH_USER, BMC_USER = "chaos", "ops"
_KEEP_ALIVE = 30.0  # wall seconds between two bookmarks to all watches
_SHUTDOWN_TIMEOUT = 0.2  # wall seconds for open requests at the end of the lab


class MachineServer(Protocol):
    """A server of one machine."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class PortError(OSError):
    """A requested port is not available."""


class Lab:
    """One lab with its files in the private ``directory``. Start it inside a running event loop.

    ``start`` starts the cluster, and may create objects in it.
    """

    def __init__(
        self, spec: LabSpec, options: ServeOptions, directory: Path, start: Callable[[Cluster], None] = Cluster.start
    ) -> None:
        self.directory, self._options, self._start_cluster = directory, options, start
        self._identity_file, self._bmc_password_file = directory / "id_ed25519", directory / "bmc-password"
        self._access, self._bmc_password = Access(spec.users), secrets.token_urlsafe(12)
        self._authority = LabAuthority(directory)
        addresses = {node.name: _server_address(node) for node in spec.nodes}
        self._ca_file, self._tls = self._authority.ca_file, self._authority.context("server", addresses.values())
        ports = {
            node.name: (PortReservation(addresses[node.name]), PortReservation(addresses[node.name], node.ssh_port))
            for node in spec.nodes
        }
        nodes = [_served(node, index, ports[node.name][0].port) for index, node in enumerate(spec.nodes)]
        self.cluster = Cluster(msgspec.structs.replace(spec, nodes=nodes))
        self.lockstep = Lockstep(self.cluster.sim, options.speed, options.free, options.careful)
        self._time_source = TimeSource(self.lockstep)
        self._client_key = asyncssh.generate_private_key("ssh-ed25519", comment="nodefall lab")
        self._kubelets: list[KubeletServer] = []
        self._hosts: list[tuple[SshServer, int]] = []
        host_key = asyncssh.generate_private_key("ssh-ed25519") if "host-key" in spec.shared_identity else None
        for name, machine in self.cluster.machines.items():
            kubelet_port, ssh_port = ports[name]
            self._kubelets.append(KubeletServer(machine, kubelet_port, self.lockstep, self._tls, self._access))
            login = (SSH_USER, self._client_key, host_key)
            host = _ssh_class(machine)(machine, ssh_port, self.lockstep, self.cluster.sim, *login)
            self._hosts.append((host, ssh_port.port))
            machine.on_change.append(lambda _: self.lockstep.on_sent())  # its connections may be closed
        self._windows = self._make_windows_hosts()
        hosts = {host.host.machine.name: host.host for host, _ in self._hosts if host.host.machine.os == "linux"}
        self._api = ApiServer(self.cluster, self.lockstep, self._access, options.watch_cache_size, hosts)
        self._controller_manager = ControllerManagerServer(self.cluster.controllers, self.lockstep, self._access)
        switches = power_switches(self.cluster.machines.values(), lie=spec.power_lies)
        self._redfish = RedfishServer(switches, self.lockstep, BMC_USER, self._bmc_password)
        self._runners: list[web.AppRunner] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def watch_count(self) -> int:
        """Number of open watches."""
        return len(self._api.watches)

    @property
    def api_misbehaviours(self) -> set[ApiMisbehaviour]:
        """Enabled faults of the API server; may be changed."""
        return self._api.fault_injector.enabled

    @property
    def client_count(self) -> int:
        """Number of open connections to the time source and the API."""
        server = self._runners[0].server
        return self._time_source.connection_count + (len(server.connections) if server else 0)

    async def start(self) -> dict[str, Any]:
        """Start all servers. Returns the content of the ready line."""
        self._start_cluster(self.cluster)
        self.cluster.warm_up()
        api_port = await self._serve(self._api.app(), self._tls, self._options.port)
        redfish_port = await self._serve(self._redfish.app(), self._tls)
        metrics_port = await self._serve(self._controller_manager.app(), self._tls)
        time_port = await self._time_source.start()
        for server in self._machine_servers():
            await server.start()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self.lockstep.run()), loop.create_task(self._keep_alive())]
        description = self._describe(f"https://127.0.0.1:{api_port}", f"https://127.0.0.1:{redfish_port}{ROOT}")
        description["controllerManager"] = f"https://127.0.0.1:{metrics_port}"
        return description | {"timeSource": {"address": "127.0.0.1", "port": time_port}}

    def failure(self) -> BaseException | None:
        """Exception of a background task that has ended; None while all run."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                return task.exception()
        return None

    async def stop(self) -> None:
        """Close every connection and port."""
        for task in self._tasks:
            task.cancel()
        self._api.watches.end_all()
        await self._time_source.stop()
        for server in self._machine_servers():
            await server.stop()
        for runner in self._runners:
            await runner.cleanup()

    def _make_windows_hosts(self) -> WindowsHosts | None:
        """WinRM of the Windows nodes. Its code is imported only for a lab that has one."""
        machines = [machine for machine in self.cluster.machines.values() if machine.os == "windows"]
        if not machines:
            return None
        from chaos.lab.server.windows_hosts import WindowsHosts  # noqa: PLC0415

        return WindowsHosts(machines, self.lockstep, self.cluster.sim, self._tls_of, self.directory)

    def _tls_of(self, node: str) -> ssl.SSLContext:
        """Context of a Windows node's WinRM, with a certificate that other nodes share if host keys are shared."""
        is_shared = "host-key" in self.cluster.spec.shared_identity
        return self._tls if is_shared else self._authority.context(f"winrm-{node}")

    def _machine_servers(self) -> list[MachineServer]:
        servers: list[MachineServer] = [*self._kubelets, *(host for host, _ in self._hosts)]
        if self._windows:
            servers += [*self._windows.servers, *self._windows.task_runners]
        return servers

    async def _serve(self, app: web.Application, tls: ssl.SSLContext, port: int = 0) -> int:
        """Serve ``app`` on a loopback port, a free one for 0, and return the port. Raises PortError."""
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_TIMEOUT)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        except OSError as error:
            raise PortError(f"port {port} of 127.0.0.1: {os.strerror(error.errno or 0)}") from error
        return int(runner.addresses[0][1])

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(_KEEP_ALIVE)
            self._api.watches.keep_alive()

    def _describe(self, api: str, redfish: str) -> dict[str, Any]:
        known_hosts, kubeconfig = self.directory / "known_hosts", self.directory / "kubeconfig.yaml"
        write_private(self._identity_file, self._client_key.export_private_key())
        write_private(self._bmc_password_file, self._bmc_password.encode())
        write_private(kubeconfig, self._kubeconfig(api, self._access.admin))
        users = []
        for number, user in enumerate(self._access.users[1:]):
            path = self.directory / f"kubeconfig-user{number}.yaml"
            write_private(path, self._kubeconfig(api, user))
            users.append({"name": user.name, "token": user.token, "kubeconfig": str(path)})
        known_hosts.write_text("".join(_known_hosts_line(host, port) for host, port in self._hosts))
        hosts = [self._describe_host(host, port, redfish) for host, port in self._hosts]
        return {
            "apiServer": api,
            "caFile": str(self._ca_file),
            "kubeconfig": str(kubeconfig),
            "token": self._access.admin.token,
            "users": users,
            "hosts": hosts,
            "knownHosts": str(known_hosts),
            "pid": os.getpid(),
            "directory": str(self.directory),
        }

    def _describe_host(self, host: SshServer, port: int, redfish: str) -> dict[str, Any]:
        machine = host.host.machine
        return {
            "node": machine.name,
            "address": machine.address,
            "port": port,
            "user": SSH_USER,
            "identityFile": str(self._identity_file),
            "os": machine.os,
            **(self._windows.describe(machine.name, self._ca_file) if self._windows else {}),
            "power": {
                "url": f"{redfish}/Systems/{machine.name}",
                "user": BMC_USER,
                "passwordFile": str(self._bmc_password_file),
                "caFile": str(self._ca_file),
            },
        }

    def _kubeconfig(self, api: str, user: User) -> bytes:
        """Kubeconfig of a user, as JSON, which is YAML."""
        name = self._options.name
        cluster = {"server": api, "certificate-authority": str(self._ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": user.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        return json.dumps(config, indent=1).encode()


def _served(node: NodeSpec, index: int, kubelet_port: int) -> NodeSpec:
    """The node where its servers listen, and with its address in the simulated network."""
    simulated = NodeAddress(type="InternalIP", address=addresses_of(index)["ipv4"])
    more = [*node.more_addresses, simulated]
    return msgspec.structs.replace(node, address=_server_address(node), kubelet_port=kubelet_port, more_addresses=more)


def _server_address(node: NodeSpec) -> str:
    """The loopback address on which the servers of a node listen."""
    return node.address if node.address.startswith("127.") else LOOPBACK


def _known_hosts_line(host: SshServer, port: int) -> str:
    key = " ".join(host.host_key.export_public_key().decode().split()[:2])
    return f"[{host.host.machine.address}]:{port} {key}\n"


def _ssh_class(machine: Machine) -> type[SshServer]:
    """Class by operating system. The code of Windows is imported only for a lab that has such a node."""
    if machine.os == "linux":
        return SshServer
    from chaos.lab.winshell.servers import WindowsSshServer  # noqa: PLC0415

    return WindowsSshServer

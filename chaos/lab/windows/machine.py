"""A Windows node: what Machine has, with the service control manager in place of systemd; and what is installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

from chaos.lab.apiserver.registry import Registry
from chaos.lab.node.kubelet.apiserver_link import FILE as CLIENT_CERTIFICATE
from chaos.lab.node.kubelet.apiserver_link import client_certificate
from chaos.lab.node.kubelet.node_shutdown import GracefulShutdown
from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.logind import Kind, LogindError
from chaos.lab.node.machine import Machine
from chaos.lab.node.network import Addresses
from chaos.lab.sim import SimClock
from chaos.lab.spec import LabSpec, NodeSpec, OperatingSystem
from chaos.lab.windows.disk import CONTROL, CRASH_CONTROL, PREFETCH, EventLog, MachineClock, TimeSync, WindowsRegistry
from chaos.lab.windows.firewall import Firewall, write_rules
from chaos.lab.windows.power import Power, PowerError, ShutdownRequest, WindowsShutdownManager
from chaos.lab.windows.services import RUNNING, STOPPED, Service, ServiceManager
from chaos.lab.windows.tasks import TaskScheduler

_SVCHOST = r"C:\Windows\System32\svchost.exe -k"
_KUBELET = r"C:\k\kubelet.exe --config=C:\var\lib\kubelet\config.yaml --kubeconfig=C:\etc\kubernetes\kubelet.conf"
_NSSM = r"C:\k\nssm.exe"
_PRESHUTDOWN = frozenset({"STOP", "PRESHUTDOWN"})
_SHUTDOWN = frozenset({"STOP", "SHUTDOWN"})
_FAILURE_RESTART, _NSSM_RESTART = 10.0, 5.0  # seconds; the GCE scripts' failure action, nssm's AppRestartDelay
_NSSM_STOP = 1.5
_SERVICING = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing"
_UPDATE = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update"
# What sets the clock right, and after how many seconds. Invented: the seconds. w32time waits for its next poll.
TIME_SERVICES = {"vmictimesync": 5.0, "w32time": 30.0}
# invented: the entries are of services that exist on every Server; the default order itself is not documented
_PRESHUTDOWN_ORDER = ("UsoSvc", "gpsvc", "trustedinstaller")


def kubelet_command(node: NodeSpec, identity: str) -> str:
    """Command line of the kubelet's process. ``identity``: of LabSpec.kubelet_identity."""
    flags = " --windows-service" if node.kubelet_service == "service" else ""
    return _KUBELET + flags + (f" --hostname-override={node.name}" if identity == "hostname-override" else "")


def builtin_services(node: NodeSpec, identity: str) -> list[Service]:
    """Services of a node, the kubelet among them. Display names of Windows' own services are the real ones."""
    return [
        Service("EventLog", "Windows Event Log", f"{_SVCHOST} LocalServiceNetworkRestricted", _SHUTDOWN),
        Service("BITS", "Background Intelligent Transfer Service", f"{_SVCHOST} netsvcs", _PRESHUTDOWN),
        Service("gpsvc", "Group Policy Client", f"{_SVCHOST} netsvcs", frozenset({"PRESHUTDOWN"})),
        Service("wuauserv", "Windows Update", f"{_SVCHOST} netsvcs", _PRESHUTDOWN, start_type="demand"),
        Service("Schedule", "Task Scheduler", f"{_SVCHOST} netsvcs", frozenset({"SHUTDOWN"})),
        Service("w32time", "Windows Time", f"{_SVCHOST} LocalService", _SHUTDOWN),
        Service(
            *("vmictimesync", "Hyper-V Time Synchronization Service", f"{_SVCHOST} LocalServiceNetworkRestricted"),
            accepts=_SHUTDOWN,
            start_type="demand",
            is_triggered=True,
        ),
        Service(
            *("WinRM", "Windows Remote Management (WS-Management)", f"{_SVCHOST} NetworkService", _SHUTDOWN),
            start_type="delayed-auto",
        ),
        Service("sshd", "OpenSSH SSH Server", r"C:\Windows\System32\OpenSSH\sshd.exe", _SHUTDOWN, own_process=True),
        Service(
            *("containerd", "containerd", r"C:\Program Files\containerd\containerd.exe --run-service", _SHUTDOWN),
            own_process=True,
            restart_after=_FAILURE_RESTART,
        ),
        _kubelet(node, identity),
    ]


def _kubelet(node: NodeSpec, identity: str) -> Service:
    """The service kubelet: real, or nssm with the kubelet as its child, which gets no pre-shutdown notice."""
    depends = tuple(node.kubelet_depends)
    if node.kubelet_service == "nssm":
        return Service(
            *("kubelet", "kubelet", _NSSM, _SHUTDOWN, depends),
            own_process=True,
            restart_after=_NSSM_RESTART,
            stop_seconds=_NSSM_STOP,
        )
    return Service(
        *("kubelet", "kubelet", kubelet_command(node, identity), _PRESHUTDOWN, depends),
        own_process=True,
        restart_after=_FAILURE_RESTART,
    )


def fill_registry(registry: WindowsRegistry, system_uuid: str, boot_id: int) -> None:
    """Write the values that tools read, and ``boot_id`` of the last boot.

    ``LastConfig`` is where the kubelet reads the UUID of the firmware (winstats).
    """
    registry.set(r"HKLM\SYSTEM\HardwareConfig", "LastConfig", "REG_SZ", f"{{{system_uuid.lower()}}}")
    registry.set(PREFETCH, "BootId", "REG_DWORD", boot_id)
    registry.set(CONTROL, "PreshutdownOrder", "REG_MULTI_SZ", _PRESHUTDOWN_ORDER)
    registry.set(CONTROL, "WaitToKillServiceTimeout", "REG_SZ", "5000")
    registry.set(CRASH_CONTROL, "AutoReboot", "REG_DWORD", 1)
    for key in (_SERVICING, _UPDATE):  # without a reboot that is pending
        registry.create(key)


KUBELET, SSHD, WINRM = "kubelet", "sshd", "WinRM"
SSH_PORT = 22
_FIRST_BOOT_ID = 31
_THROTTLED = 120.0  # invented: seconds after which nssm starts a program again that fails
_DUMP_SECONDS = 10.0  # invented: from a bug check to the reset; a dump of much memory takes minutes
_AUTO_START = (3.0, 5.0)  # invented: seconds from the kernel's start to the automatic services
_DELAYED_START = (4.0, 8.0)  # invented: from those to the services with delayed start; Windows waits up to 120 s


class WindowsMachine(Machine):
    """``computer``: its NetBIOS name. Registry, event log, tasks and firewall rules are on disk, services are not."""

    os: OperatingSystem = "windows"

    def __init__(
        self, sim: SimClock, registry: Registry, spec: LabSpec, index: int, addresses: dict[str, Addresses]
    ) -> None:
        self.computer = spec.nodes[index].name.upper()[:15]
        self.registry, rules = WindowsRegistry(), registry.rules.windows
        self.clock = MachineClock(sim)
        self.event_log = EventLog(self.clock, self.computer)
        self.services = ServiceManager(sim, self.registry, rules)
        self.tasks = TaskScheduler(sim, self.clock)
        super().__init__(sim, registry, spec, index, addresses)
        self.logind.installed = False
        self.system_uuid = self.system_uuid.upper()  # as winstats has it
        self.power = Power(sim, self.event_log, self._stop_services, self._complete, rules)
        self.firewall = Firewall(self.network)
        self.firewall.on_change.append(self._call_listeners)
        fill_registry(self.registry, self.system_uuid, _FIRST_BOOT_ID)
        self._is_up, self._was_clean, self._bug_check = False, True, False
        self._stopped_at = sim.now
        if self.kubelet_identity == "certificate":
            self.files[CLIENT_CERTIFICATE] = client_certificate(self.name)
        for service in builtin_services(self.spec, self.kubelet_identity):
            self.services.add(service)
        if rules.wrapped_services_notified:
            self.services.get(KUBELET).accepts = frozenset({"STOP", "PRESHUTDOWN"})
        self.power.on_late_abort = self._go_on
        if rules.countdown_announced:
            self.power.on_countdown = self._announce_countdown
        self._connect_services()

    @property
    def is_up(self) -> bool:
        """Whether the kernel runs."""
        return self._is_up

    @property
    def uptime(self) -> float:
        """Seconds since the kernel's start, which do not depend on the clock."""
        return self._sim.now - self.pid1_start

    @property
    def runs_kubelet_as_service(self) -> bool:
        """Whether the kubelet itself speaks to the service control manager."""
        return self.spec.kubelet_service == "service" or self._registry.rules.windows.wrapped_services_notified

    @property
    def is_kubelet_port_open(self) -> bool:
        return any(map(self.accepts, self.network.server_addresses.values()))

    def accepts(self, peer: str) -> bool:
        """Whether packets of ``peer`` reach this machine."""
        return not self._is_up or not self.firewall.blocks("in", peer)

    def make_shutdown_manager(
        self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers
    ) -> GracefulShutdown:
        service = self.services.get(KUBELET) if self.runs_kubelet_as_service else None
        if service is None and math.isfinite(seconds := process.rules.windows.unserved_kubelet_lasts):
            process.after(seconds, self._fail_kubelet)
        return WindowsShutdownManager(process, reporter, workers, self.registry, self.services, service)

    def request_shutdown(self, kind: Kind) -> None:
        try:
            self.power.request(ShutdownRequest(kind, 0.0, r"C:\Windows\System32\RuntimeBroker.exe"))
        except PowerError as error:
            raise LogindError(f"the shutdown is refused: {error}") from error

    def press_power_button(self) -> None:
        if self.state == "off":
            self.power_on()
        elif self.is_reachable:
            with suppress(LogindError):  # a shutdown is in progress: the press has no effect
                self.request_shutdown("poweroff")

    def boot_at_once(self) -> None:
        super().boot_at_once()
        for service in self.services.all():
            if service.starts_at_boot and service.name != KUBELET:
                self.services.run_at_once(service)

    def crash(self) -> None:
        self._bug_check = True
        super().crash()

    def seconds_to_reset_after_crash(self) -> float:
        return _DUMP_SECONDS if self.registry.number(CRASH_CONTROL, "AutoReboot") else 0.0

    def notify(self) -> None:
        """Note the start or the end of the kubelet's process, which its service follows."""
        if self._is_up and not self.is_stopping:
            service = self.services.get(KUBELET)
            if self.kubelet.is_running and service.state == STOPPED:
                self.services.run_at_once(service)
            elif not self.kubelet.is_running and service.state == RUNNING:
                self.services.kill(service)
        super().notify()

    def _announce_countdown(self) -> None:
        service = self.services.get(KUBELET)
        if service.is_running and service.on_preshutdown is not None:
            service.on_preshutdown(lambda: None)

    def _set_ids(self, spec: LabSpec) -> None:
        super()._set_ids(spec)
        self.machine_id = self.name  # winstats has the host name there

    def _connect_services(self) -> None:
        kubelet = self.services.get(KUBELET)
        kubelet.on_start, kubelet.on_stop = self.kubelet.start, self.kubelet.stop
        containerd = self.services.get("containerd")
        containerd.on_start, containerd.on_stop = self.runtime.start_service, self.runtime.stop_service
        sshd = self.services.get(SSHD)
        sshd.on_start, sshd.on_stop = self._start_sshd, self._stop_sshd
        self.services.on_change.append(self._on_service_change)
        self.firewall.on_change.append(self._store_rules)
        self._store_rules()
        self._time_sync = TimeSync(
            self._sim, self.clock, TIME_SERVICES, lambda name: self.services.get(name).is_running
        )

    def _on_service_change(self, service: Service) -> None:
        if service.name == WINRM:
            self._call_listeners()
        elif service.name in TIME_SERVICES:
            self._time_sync.check()

    def _store_rules(self) -> None:
        write_rules(self.firewall, self.registry)

    def _stop_sshd(self) -> None:
        self.is_reachable = False
        self._call_listeners()

    def _new_boot(self) -> None:
        number = (self.registry.number(PREFETCH, "BootId") or 0) + 1
        self.registry.set(PREFETCH, "BootId", "REG_DWORD", number)
        self.boot_id = str(number)
        self.pid1_start = round(self._sim.now, 2)
        self._is_up = True
        self.event_log.log_boot(clean=self._was_clean, bug_check=self._bug_check, stopped_at=self._stopped_at)
        self._was_clean = self._bug_check = False
        self.tasks.start()
        self.firewall.apply()

    def _boot(self) -> None:
        self._new_boot()
        known = self.spec.boot_seconds
        start = 0.6 * known if known else self._sim.rng.uniform(*_AUTO_START)
        self._schedule(start, self.services.start_at_boot, False)
        delayed = 0.2 * known if known else self._sim.rng.uniform(*_DELAYED_START)
        self._schedule(start + delayed, self.services.start_at_boot, True)

    def _stop_services(self, done: Callable[[], None]) -> None:
        self.is_stopping = True
        self.services.shut_down(done)

    def _fail_kubelet(self) -> None:
        self.services.get(KUBELET).restart_after = _THROTTLED
        self.kubelet.stop()

    def _go_on(self) -> None:
        """Start the services again that a shutdown has stopped which no real Windows would abort any more."""
        self.is_stopping = False
        self.kubelet.stop()
        self.services.lose_power()
        self.services.start_at_boot(False)
        self.services.start_at_boot(True)

    def _complete(self, kind: Kind) -> None:
        self._was_clean = True
        self._complete_shutdown(kind)

    def _clear_memory(self) -> None:
        self._is_up, self._stopped_at = False, self.clock.now
        self.power.lose_power()
        self.services.lose_power()
        self.tasks.lose_power()
        super()._clear_memory()

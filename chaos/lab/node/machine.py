"""A machine: power, boot, logind, container runtime, kubelet."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable
from typing import Literal

from chaos.lab.apiserver.registry import Registry
from chaos.lab.node.etcd import EtcdCluster
from chaos.lab.node.kubelet.apiserver_link import FILE as CERTIFICATE
from chaos.lab.node.kubelet.apiserver_link import has_expired
from chaos.lab.node.kubelet.kubelet import Kubelet
from chaos.lab.node.kubelet.metrics import STATE_FILE
from chaos.lab.node.kubelet.node_shutdown import GracefulShutdown, ShutdownManager
from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import Process, Resource
from chaos.lab.node.kubelet.runtime import Runtime
from chaos.lab.node.kubelet.static_pods import MANIFESTS, manifest
from chaos.lab.node.logind import Journal, Kind, Logind
from chaos.lab.node.network import DIRECTIONS, FAMILIES, Addresses, Direction, Family, Network, addresses_of
from chaos.lab.objects import parse_quantity, set_condition
from chaos.lab.sim import SimClock, Timer
from chaos.lab.spec import LabSpec, OperatingSystem, SharedIdentity

_UUIDS = uuid.UUID("6d1f5c1e-8f3b-4f0a-9d5e-2b7c4a90e1d3")  # namespace of the UUIDs that a seed defines
_FIRMWARE = (1.0, 2.0)  # power button to PID 1
_SSHD = (3.5, 6.0)  # PID 1 to sshd
_KUBELET = (0.3, 1.5)  # sshd to kubelet
_RESET = (0.4, 1.0)  # power off to power on in a reboot
_STOP_SERVICES = (0.1, 0.3)  # end of logind's delay to the end of the kubelet; from recording 01
_STOP_MACHINE = (0.6, 1.5)  # end of logind's delay to power off


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def kubelet_conf(server: str) -> str:
    """Kubeconfig of the kubelet, with only the API server's address and the file of the certificate and key."""
    return (
        "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n"
        f"    server: {server}\n  name: nodefall-lab\n"
        f"users:\n- name: default-auth\n  user:\n    client-certificate: {CERTIFICATE}\n    client-key: {CERTIFICATE}\n"
    )


class Machine:
    """``index``: position in the LabSpec. ``pressure``: resources that are short for a reason outside Kubernetes.

    ``on_change``: called with the machine when ``state``, ``is_reachable`` or the kubelet's process changes.
    """

    os: OperatingSystem = "linux"

    def __init__(
        self, sim: SimClock, registry: Registry, spec: LabSpec, index: int, addresses: dict[str, Addresses]
    ) -> None:
        self.index = index
        self.spec = node = spec.nodes[index]
        self.name = node.name
        self.address = node.address or addresses[node.name]["ipv4"]
        self.kubelet_port = node.kubelet_port
        server = next((item.name for item in spec.nodes if item.role == "control-plane"), spec.nodes[0].name)
        self.network = Network(FAMILIES if spec.dual_stack else ("ipv4",), addresses, server)
        self.state: Literal["on", "off"] = "off"
        self.is_reachable = False
        self.is_stopping = False  # PID 1 stops the units, and starts none
        self.boot_id = ""
        self.pid1_start = 0.0
        self.swap = 0  # active bytes
        self.kubelet_identity = spec.kubelet_identity
        self._shared = frozenset(spec.shared_identity)
        self.system_uuid = str(uuid.uuid5(_UUIDS, f"{spec.seed}/{self._owner('system-uuid')}"))
        self._boots, self._per_boot, self._addresses = 0, frozenset(spec.per_boot), addresses
        self.machine_id = self.container_id = ""  # the latter "" on a machine that is no container
        self._set_ids(spec)
        self.on_change: list[Callable[[Machine], None]] = []
        self.files: dict[str, str] = {}
        self.mounted_certificate = ""  # over the kubelet's client certificate, until the next boot
        self.hidden_files: set[str] = set()  # over which /dev/null is mounted, until the next boot
        self.etcd = EtcdCluster(sim, spec.seed, {})  # the cluster's
        self.pressure: set[Resource] = set()
        self._sim, self._registry = sim, registry
        self._timers: list[Timer] = []
        self.files["/etc/kubernetes/kubelet.conf"] = kubelet_conf(f"https://{server}:6443")
        for name, seconds in node.logind_drop_ins.items():
            self.files[f"/usr/lib/systemd/logind.conf.d/{name}"] = f"[Login]\nInhibitDelayMaxSec={seconds}\n"
        for pod in node.static_pods:
            self.files[f"{MANIFESTS}{pod.name}.yaml"] = manifest(pod)
        self.logind = Logind(sim, node.systemd, self.shut_down, registry.rules.logind, self.files, node.logind)
        self.runtime = Runtime(sim, registry.rules.pods.minimum_grace_period_seconds)
        self.journal = Journal(sim)
        self.kubelet = Kubelet(sim, registry, spec, self, self.make_shutdown_manager)

    def boot_at_once(self) -> None:
        """Boot without delay, when a lab starts. Raises RuntimeError if the machine is on."""
        if self.state == "on":
            raise RuntimeError(f"boot of {self.name}: the machine is on")
        self._new_boot()
        if self.spec.swapped_off:
            self.swap = 0
        self.state, self.is_reachable = "on", True
        self._call_listeners()

    def power_on(self) -> None:
        """Power on, if off. sshd starts after 5 to 8 s, the kubelet later."""
        if self.state == "on":
            return
        self.state = "on"
        known = self.spec.boot_seconds
        self._schedule(0.2 * known if known else self._sim.rng.uniform(*_FIRMWARE), self._boot)
        self._call_listeners()

    def power_off(self) -> None:
        """Cut the power, without a shutdown."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self.state == "off":
            return
        self.state = "off"
        self._clear_memory()

    def reset(self) -> None:
        """Reboot immediately, as the reset button or sysrq b; no effect on a machine that is off."""
        if self.state == "on":
            self.power_off()
            self.power_on()

    def crash(self) -> None:
        """Crash the kernel: all processes end, the power stays on; a reset follows after ``panicTimeout``, if not 0."""
        if self.state == "off":
            return
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._clear_memory()
        if seconds := self.seconds_to_reset_after_crash():
            self._schedule(seconds, self.reset)

    def seconds_to_reset_after_crash(self) -> float:
        """Seconds until a machine whose kernel has crashed resets itself; 0 if it does not."""
        return float(self.spec.panic_timeout)

    def _clear_memory(self) -> None:
        """End all processes and lose all state in memory."""
        self.is_reachable = self.is_stopping = False
        self.logind.stop()  # before the kubelet, whose end would release the inhibitor lock
        self.kubelet.stop()
        self.kubelet.cpu.limit(None)  # set at run time
        self.runtime.lose_power()
        self.network.heal()  # firewall rules do not persist
        self.network.impair({})
        self.pressure &= {"disk"}
        self.mounted_certificate = ""
        self.hidden_files.clear()
        if not self._registry.rules.node_shutdown.keeps_state_file:
            self.files.pop(STATE_FILE, None)
        self._call_listeners()

    def partition(self, families: Iterable[Family] = FAMILIES, directions: Iterable[Direction] = DIRECTIONS) -> None:
        """Drop packets between the machine and the control plane; its sshd stays reachable."""
        self.network.drop(families, directions)

    def heal(self, families: Iterable[Family] = FAMILIES, directions: Iterable[Direction] = DIRECTIONS) -> None:
        """Stop dropping these packets."""
        self.network.heal(families, directions)

    def report_network(self, available: bool) -> None:
        """Write NetworkUnavailable as a route controller or network plugin does; no kubelet does (facts 5.4)."""
        new = {"type": "NetworkUnavailable", "status": "False" if available else "True"}
        new["reason"] = "RouteCreated" if available else "NoRouteCreated"
        new["message"] = "RouteController created a route" if available else "Node created without a route"
        now = self._sim.timestamp()
        self._registry.store.patch("nodes", "", self.name, lambda node: set_condition(node, dict(new), now))

    def make_shutdown_manager(
        self, process: Process, reporter: NodeStatusReporter, workers: PodWorkers
    ) -> GracefulShutdown:
        """The kubelet's shutdown manager of this operating system."""
        return ShutdownManager(process, reporter, workers)

    def request_shutdown(self, kind: Kind) -> None:
        """Shut down in order, as asked by a BMC. Raises LogindError if that is refused."""
        (self.logind.reboot if kind == "reboot" else self.logind.power_off)()

    def press_power_button(self) -> None:
        """Switch on a machine that is off; let the operating system of one that is up decide."""
        if self.state == "off":
            self.power_on()
        elif self.is_reachable:
            self.logind.press_power_key()

    @property
    def kubelet_may_start(self) -> bool:
        """Whether a kubelet that starts keeps running: without a container runtime, or with what it refuses, it exits.

        With an expired certificate as it has no bootstrap kubeconfig: pkg/kubelet/certificate/bootstrap. With swap on
        and failSwapOn: pkg/kubelet/cm/container_manager_linux.go validateSwapConfiguration.
        """
        rules = self._registry.rules.node_status
        fails = self.spec.fail_swap_on if rules.fail_swap_on is None else rules.fail_swap_on
        refuses_swap = fails and self.swap > rules.tolerated_swap
        return (
            not refuses_swap and self.runtime.is_available and not has_expired(self.mounted_certificate, self._sim.now)
        )

    @property
    def is_kubelet_port_open(self) -> bool:
        """Whether packets of the API server reach the kubelet's port."""
        return True

    def notify(self) -> None:
        """Call ``on_change``; for the kubelet, when its process starts, stops or ends."""
        self._call_listeners()

    def _boot(self) -> None:
        self._new_boot()
        known = self.spec.boot_seconds
        sshd = 0.6 * known if known else self._sim.rng.uniform(*_SSHD)
        self._schedule(sshd, self._start_sshd)
        self._schedule(sshd + (0.2 * known if known else self._sim.rng.uniform(*_KUBELET)), self.kubelet.start)

    def _new_boot(self) -> None:
        boot = uuid.UUID(int=self._sim.rng.getrandbits(128), version=4)
        self._boots += 1
        self._set_ids(self._registry.spec)
        self.boot_id = str(uuid.uuid5(_UUIDS, "kernel") if "boot-id" in self._shared else boot)
        self.pid1_start = round(self._sim.now, 2)
        self.swap = int(parse_quantity(self.spec.swap or "0"))
        self.logind.start()

    def _set_ids(self, spec: LabSpec) -> None:
        """Set what identifies the machine; some of it changes with each boot."""
        boot = f"/{self._boots}" if spec.machine_id_per_boot and self.os == "linux" else ""
        self.machine_id = _digest(f"{spec.seed}/{self._owner('machine-id')}{boot}")[:32]
        if boot:
            self.container_id = _digest(f"{spec.seed}/{self.name}{boot if 'container-id' in self._per_boot else ''}/id")
        if "address" in self._per_boot and not self.spec.address and self._boots > 1:
            self._addresses[self.name] = addresses_of(self.index + (self._boots - 1) * len(self._addresses))
            self.address = self._addresses[self.name]["ipv4"]

    @property
    def host_key_owner(self) -> str:
        """Whose SSH host key the machine has now: that of an image, of the machine, or of this boot."""
        boot = f"/{self._boots}" if "host-key" in self._per_boot else ""
        return self._owner("host-key") + boot

    def _owner(self, field: SharedIdentity) -> str:
        """The machine whose value this is, "" for one that all machines share."""
        return "" if field in self._shared else self.name

    def _start_sshd(self) -> None:
        self.is_reachable = True
        self._call_listeners()

    def shut_down(self, kind: Kind) -> None:
        """Stop all units and then the machine, as PID 1: for logind, or for root without logind."""
        self.is_stopping = True
        self._schedule(self._sim.rng.uniform(*_STOP_SERVICES), self.kubelet.stop)
        self._schedule(self._sim.rng.uniform(*_STOP_MACHINE), self._complete_shutdown, kind)

    def _complete_shutdown(self, kind: Kind) -> None:
        self.power_off()
        if kind == "reboot":
            self._schedule(self._sim.rng.uniform(*_RESET), self.power_on)

    def _schedule(self, delay: float, call: Callable[..., None], *args: object) -> None:
        self._timers = [timer for timer in self._timers if timer.due >= self._sim.now and not timer.cancelled]
        self._timers.append(self._sim.after(delay, call, *args))

    def _call_listeners(self) -> None:
        for call in list(self.on_change):
            call(self)

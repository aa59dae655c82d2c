"""The kubelet's service of a machine: starts, stops and restarts the kubelet's process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from chaos.lab.apiserver.events import Recorder
from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import Change
from chaos.lab.node.kubelet.admission import Pressure
from chaos.lab.node.kubelet.apiserver_link import Registration
from chaos.lab.node.kubelet.metrics import STATE_FILE, Metrics, format_metrics
from chaos.lab.node.kubelet.node_shutdown import GracefulShutdown
from chaos.lab.node.kubelet.node_status import NodeStatusReporter
from chaos.lab.node.kubelet.pod_worker import VolumeMounts
from chaos.lab.node.kubelet.pod_workers import PodWorkers
from chaos.lab.node.kubelet.process import KubeletCpu, MachineView, Process
from chaos.lab.node.network import Family
from chaos.lab.objects import Object, labels_of, name_of
from chaos.lab.sim import SimClock
from chaos.lab.spec import LabSpec

_RESTART = (0.1, 0.3)
_RESTART_SEC = 10.0  # the unit's RestartSec, Restart=always
_MANAGER = (0.2, 0.4)  # the shutdown manager starts once the container runtime is up
_LIST_PODS = (0.9, 1.1)  # start to the first list of pods; recordings 01 and 05


class Kubelet:
    """The unit and its current process, if any. The port answers exactly while the process runs.

    ``make_manager``: the shutdown manager of the operating system.
    """

    def __init__(
        self,
        sim: SimClock,
        registry: Registry,
        spec: LabSpec,
        machine: MachineView,
        make_manager: Callable[[Process, NodeStatusReporter, PodWorkers], GracefulShutdown],
    ) -> None:
        self._make_manager = make_manager
        self._sim, self._registry, self._spec, self._machine = sim, registry, spec, machine
        self.cpu = KubeletCpu(sim)
        self._recorder = Recorder(sim, registry.store, "kubelet", machine.name)
        self._process: Process | None = None
        self._workers: PodWorkers | None = None
        self._manager: GracefulShutdown | None = None
        self._pressure: Pressure | None = None
        self._reporter: NodeStatusReporter | None = None
        self.eviction_rank: Callable[[Object], float] = lambda _: 0.0  # lower ones first; can be replaced
        self.registrations: list[Registration | None] = []  # those to come, instead of by default
        self._pids = self._starts_without_node = 0
        self._last_taints: list[list[Object]] = []
        self._should_run = False
        registry.store.subscribe_node(machine.name, self._on_change)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def connection_family(self) -> Family | None:
        """Address family of the connection to the API server, None without a connection."""
        return self._process.link.family if self._process else None

    def start(self) -> None:
        """Start the unit if it is stopped. Raises RuntimeError if the machine is off.

        A process that may not start exits; the unit restarts it every 10 s.
        """
        if self.is_running:
            return
        if self._machine.state == "off":
            raise RuntimeError(f"kubelet of {self._machine.name}: the machine is off")
        self._should_run = True
        if not self._machine.kubelet_may_start:
            self._sim.after(_RESTART_SEC, self._start_if_needed)
            return
        self._pids += 1
        gauges = Metrics(process_start=round(self._sim.now, 2))
        process = Process(
            self._sim, self._registry, self._spec, self._machine, self._recorder, 700 + self._pids, gauges,
            self.cpu, start_time=self._sim.now,
        )  # fmt: skip
        was_shut_down = STATE_FILE in self._machine.files
        process.is_shutting_down = was_shut_down and process.rules.node_shutdown.survives_restart
        pressure = self._pressure = Pressure(process, self.eviction_rank)
        volumes = VolumeMounts(process)
        reporter = self._reporter = NodeStatusReporter(process, pressure, volumes)
        reporter.registrations, reporter.last_taints = self.registrations, self._last_taints
        self._prepare_registration(process, reporter)
        self._process, self._workers = process, PodWorkers(process, pressure, volumes)
        pressure.start(self._workers)
        self._manager = self._make_manager(process, reporter, self._workers)
        reporter.start()
        process.after_jitter(*_MANAGER, self._manager.start)
        process.after_jitter(*_LIST_PODS, self._workers.start)
        self._machine.notify()

    def _prepare_registration(self, process: Process, reporter: NodeStatusReporter) -> None:
        """Decide whether and when the process creates its Node, if there is none."""
        rules = process.rules.node_status
        if rules.turns_swap_off:
            self._machine.swap = 0
        has_flag = self._machine.spec.register_node or not rules.heeds_register_node
        has_node = self._registry.store.get("nodes", "", self._machine.name) is not None
        self._starts_without_node = 0 if has_node or self._pids == 1 else self._starts_without_node + 1
        reporter.may_register = has_flag and (self._pids == 1 or self._starts_without_node > rules.ignored_starts)
        if self._pids > 1 or not self._machine.spec.register_node:
            reporter.registration_delay = rules.registration_delay

    def stop(self) -> None:
        """Stop the unit: the process ends, its inhibitor lock is released, containers keep running."""
        self._should_run = False
        self._end()

    def kill(self) -> None:
        """Send SIGKILL to the process; the unit restarts it after 10 s. Raises RuntimeError without a process."""
        self._require_process()
        self._end()
        self._sim.after(_RESTART_SEC, self._start_if_needed)

    def _end(self) -> None:
        if self._process is None or self._manager is None:
            return
        self._process.is_alive = False
        self._process.link.close()
        manager, self._process, self._workers, self._manager = self._manager, None, None, None
        self._machine.runtime.forget_waiters()
        manager.close()
        self._machine.notify()

    @property
    def is_frozen(self) -> bool:
        """Whether the process is stopped by SIGSTOP: its port accepts connections and never responds."""
        return self._process is not None and self._process.is_frozen

    def freeze(self) -> None:
        """Send SIGSTOP: the process keeps its lock and does nothing. Raises RuntimeError without a process."""
        self._require_process().freeze()
        self._machine.notify()

    def thaw(self) -> None:
        """Send SIGCONT: deferred work runs immediately. Raises RuntimeError without a process."""
        self._require_process().thaw()
        self._machine.notify()

    def restart(self) -> None:
        """Stop the unit, and start it 0.1 to 0.3 s later unless the machine shuts down or is off."""
        self.stop()
        self._should_run = True
        self._sim.after(self._sim.rng.uniform(*_RESTART), self._start_if_needed)

    def choose_lock_loss(self, lost: bool) -> None:
        """Whether the next cancellation loses the lock, instead of by chance."""
        if self._manager is not None:
            self._manager.chosen_lock_loss = lost

    def choose_rejections(self, number: int) -> None:
        """Set how many pods the kubelet rejects before a shutdown stops it, instead of choosing by chance."""
        if self._process is not None:
            self._process.rejections_left = number

    def observe_pressure(self) -> None:
        """Make a round of the eviction manager now; its phase is chance."""
        if self._process is not None and self._pressure is not None and self._workers is not None:
            self._pressure.run_now(self._workers)

    def rephase_pressure_rounds(self) -> None:
        """Let the rounds of the eviction manager have any phase, as those of a kubelet that has run for long."""
        if self._process is not None and self._pressure is not None and self._workers is not None:
            self._pressure.rephase(self._workers)

    def report_node(self) -> None:
        """Report the node's status now."""
        if self._process is not None and self._reporter is not None:
            self._reporter.report_now()

    def lose_lock(self) -> None:
        """Close the inhibitor's file descriptor by mistake, as after a cancelled shutdown (facts 2)."""
        if self._manager is not None:
            self._manager.lose_lock()

    def report_pod(self, uid: str) -> None:
        """Write the status of a pod, as when the result of a probe changes."""
        if self._workers is not None:
            self._workers.report(uid)

    def label_nodes(self, key: str, value: str | None) -> list[str]:
        """Label all Nodes as this kubelet, or remove the label; names of those that it may not change."""
        allowed, refused = self._registry.rules.api_server.kubelets_may_change, []

        def change(node: Object) -> None:
            labels = {name: text for name, text in (node["metadata"].get("labels") or {}).items() if name != key}
            node["metadata"]["labels"] = labels | ({} if value is None else {key: value})

        for node in self._registry.store.list("nodes"):
            is_worker = "node-role.kubernetes.io/control-plane" not in labels_of(node)
            is_own = name_of(node) == self._machine.name
            if is_own or allowed == "all" or (allowed == "workers" and is_worker):
                self._registry.store.patch("nodes", "", name_of(node), change)
            else:
                refused.append(name_of(node))
        return refused

    def has_labeled_node(self, key: str, value: str) -> bool:
        """Whether a Node has this label."""
        return any(labels_of(node).get(key) == value for node in self._registry.store.list("nodes"))

    def metrics_text(self) -> str:
        """Response to ``/metrics``. Raises RuntimeError without a process."""
        process = self._require_process()
        running = sum(
            any(item.state == "running" for item in self._machine.runtime.containers(uid))
            for uid in self._machine.runtime.pods()
        )
        return format_metrics(process.metrics, self._machine.name, self._spec, running, process.rules.node_shutdown)

    def configz(self) -> dict[str, Any]:
        """Response to ``/configz``. Raises RuntimeError without a process."""
        self._require_process()
        node = self._machine.spec
        by_priority = [
            {"priority": item.priority, "shutdownGracePeriodSeconds": item.shutdown_grace_period_seconds}
            for item in node.shutdown_grace_period_by_pod_priority
        ]
        config: dict[str, Any] = {
            "shutdownGracePeriod": node.shutdown_grace_period,
            "shutdownGracePeriodCriticalPods": node.shutdown_grace_period_critical_pods,
            "nodeLeaseDurationSeconds": self._registry.rules.node_status.node_lease_duration_seconds,
            "nodeStatusUpdateFrequency": "10s",
            "nodeStatusReportFrequency": "5m0s",
            "registerNode": node.register_node,
            "evictionHard": self._registry.rules.node_pressure.eviction_hard,
            "failSwapOn": node.fail_swap_on,
        }
        if node.taints:
            config["registerWithTaints"] = [msgspec.to_builtins(taint) for taint in node.taints]
        if node.feature_gates:
            config["featureGates"] = node.feature_gates
        if by_priority:
            config["shutdownGracePeriodByPodPriority"] = by_priority
        return {"kubeletconfig": config}

    def pods(self) -> list[Object]:
        """Response to ``/pods``: the pods bound to the node. Raises RuntimeError without a process."""
        self._require_process()
        return self._registry.store.pods_on(self._machine.name)

    def _require_process(self) -> Process:
        if self._process is None:
            raise RuntimeError(f"kubelet of {self._machine.name}: not running")
        return self._process

    @property
    def pid(self) -> int:
        """ID of the process, 0 without one."""
        return self._process.pid if self._process else 0

    def _start_if_needed(self) -> None:
        if self._should_run and self._machine.state == "on" and not self._machine.is_stopping:
            self.start()

    def _on_change(self, change: Change) -> None:
        if self._process is not None and self._workers is not None:
            self._process.has_pod_changes = True
            self._workers.on_change(change)

"""The world of the invariants: changes of the store, state of the machines, operations of clients and tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.apiserver.store import Change
from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.metrics import STATE_FILE, read_state_file
from chaos.lab.node.logind import Inhibitor
from chaos.lab.node.machine import Machine
from chaos.lab.objects import Object, condition_status, is_terminal, node_of, taints_of, uid_of

NO_EXECUTE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_SETTLED = 60.0  # a kubelet reconnects within this time after a heal


@dataclass(frozen=True, slots=True)
class Violation:
    """``rule``: number in facts 16. ``at``: seconds since the lab's start."""

    rule: int
    at: float
    text: str


@dataclass(slots=True)
class Signal:
    """One PrepareForShutdown. ``held``: a kubelet had the lock; ``busy``: a shutdown was being processed."""

    at: float
    active: bool
    held: bool
    busy: bool


@dataclass(slots=True)
class Host:
    """One observed machine. ``changed``: last change of its power or kubelet; ``network``: of its network."""

    machine: Machine
    pid: int = 0
    started: float = 0.0
    changed: float = 0.0
    network: float = 0.0
    signals: list[Signal] = field(default_factory=list)  # of this process
    lost_signals: bool = False
    had_file: bool = False

    @property
    def holds_lock(self) -> bool:
        return any(item["who"] == "kubelet" for item in self.machine.logind.inhibitors())

    @property
    def file(self) -> tuple[int, int] | None:
        """Start and end of the last shutdown from the state file."""
        text = self.machine.files.get(STATE_FILE)
        return read_state_file(text) if text else None

    @property
    def busy(self) -> bool:
        """Whether this process is between the two times of its state file."""
        found = self.file
        return self.pid != 0 and found is not None and found[1] == 0 and found[0] >= int(self.started)

    def runs(self, uid: str) -> bool:
        return any(item.state == "running" for item in self.machine.runtime.containers(uid))


class World:
    """State of the rules. ``forced``: uids that a client deleted with grace 0."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.sim, self.store, self.spec = cluster, cluster.sim, cluster.store, cluster.spec
        self.violations: list[Violation] = []
        self.forced: set[str] = set()
        self.unlawful: set[str] = set()
        self.restarted = float("-inf")  # kube-controller-manager
        self.touched = float("-inf")  # last operation of a client
        self.memory: dict[Hashable, Any] = {}
        self.hosts = {name: Host(machine) for name, machine in cluster.machines.items()}
        self._wrong: dict[Hashable, object] = {}
        for host in self.hosts.values():
            self._watch(host)
        self._wrap_clients()

    def violated(self, rule: int, text: str) -> None:
        self.violations.append(Violation(rule, round(self.sim.now - self.spec.start, 3), text))

    def persisting(self, rule: int, key: Hashable, seconds: float, text: str, wrong: Callable[[], bool]) -> None:
        """Report a violation if ``wrong`` holds for so many seconds; called again at every change that can end it."""
        if not wrong():
            self._wrong.pop((rule, key), None)
        elif (rule, key) not in self._wrong:
            token = self._wrong[rule, key] = object()
            self.sim.after(seconds, self._check_persisting, rule, key, token, text, wrong)

    def _check_persisting(self, rule: int, key: Hashable, token: object, text: str, wrong: Callable[[], bool]) -> None:
        if self._wrong.get((rule, key)) is token:
            del self._wrong[rule, key]
            if wrong():
                self.violated(rule, text)

    def calm(self, node: str, since: float) -> bool:
        """Whether the node's kubelet has been running and connected to the API server since that time."""
        host = self.hosts.get(node)
        if host is None or not host.machine.kubelet.is_running or host.machine.kubelet.is_frozen:
            return False
        return host.changed < since and host.network < since - _SETTLED and not host.machine.network.drops()

    def host_of(self, pod: Object) -> Host | None:
        return self.hosts.get(node_of(pod))

    def node(self, name: str) -> Object | None:
        return self.store.get("nodes", "", name)

    def same(self, pod: Object) -> Object | None:
        """Current version of the pod, None if it was removed."""
        found = self.store.get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        return found if found is not None and uid_of(found) == uid_of(pod) else None

    def collected(self, pod: Object) -> bool:
        """Whether pod GC may end the pod: its node is missing or out of service, or the pod is unbound."""
        node = self.node(node_of(pod))
        return node is None or any(taint["key"] == OUT_OF_SERVICE for taint in taints_of(node))

    def _watch(self, host: Host) -> None:
        machine, logind = host.machine, host.machine.logind
        machine.on_change.append(lambda _: self._on_machine_change(host))
        machine.network.on_change.append(lambda: setattr(host, "network", self.sim.now))
        emit, restart_bus, plan = logind.emit_prepare_for_shutdown, logind.restart_bus, logind.schedule

        def signal(active: bool) -> None:
            host.signals.append(Signal(self.sim.now, active, host.holds_lock, host.busy))
            emit(active)
            if not active:
                for call in self.memory.get("signals", []):
                    call(self, host)

        def restart() -> None:
            host.lost_signals = True
            restart_bus()

        def schedule(kind: str, at: float) -> None:
            known = len(host.signals)
            plan(kind, at)
            if len(host.signals) > known:
                self.violated(6, f"{machine.name}: announced before its time")

        logind.schedule = schedule  # type: ignore[method-assign]
        logind.emit_prepare_for_shutdown = signal  # type: ignore[method-assign]
        logind.restart_bus = restart  # type: ignore[method-assign]

    def _on_machine_change(self, host: Host) -> None:
        host.changed = self.sim.now
        if host.machine.kubelet.pid != host.pid:
            host.pid, host.started = host.machine.kubelet.pid, self.sim.now
            host.signals, host.lost_signals = [], False
            if host.pid:
                for call in self.memory.get("processes", []):
                    call(self, host)

    def on_process(self, call: Callable[[World, Host], None]) -> None:
        """Call ``call`` after the start of a kubelet process."""
        self.memory.setdefault("processes", []).append(call)

    def on_signal(self, call: Callable[[World, Host], None]) -> None:
        """Call ``call`` at every PrepareForShutdown(false)."""
        self.memory.setdefault("signals", []).append(call)

    def on_release(self, call: Callable[[World, Host, Inhibitor], None]) -> None:
        """Call ``call`` after a kubelet has released its lock."""
        for host in self.hosts.values():
            self._wrap_release(host, call)

    def _wrap_release(self, host: Host, call: Callable[[World, Host, Inhibitor], None]) -> None:
        release = host.machine.logind.release

        def wrapped(lock: Inhibitor) -> None:
            release(lock)
            call(self, host, lock)

        host.machine.logind.release = wrapped  # type: ignore[method-assign]

    def _wrap_clients(self) -> None:
        """Wrap clients' deletions and evictions, and restarts of kube-controller-manager."""
        cluster, delete, evict = self.cluster, self.cluster.delete_object, self.cluster.evict_pod
        restart = cluster.controllers.restart

        def delete_object(plural: str, namespace: str, name: str, grace: int | None = None, *rest: Any) -> Object:
            self._note_forced(namespace, name, grace)
            return delete(plural, namespace, name, grace, *rest)

        def evict_pod(namespace: str, name: str, options: Object | None = None, *rest: Any) -> None:
            self._note_forced(namespace, name, (options or {}).get("gracePeriodSeconds"))
            evict(namespace, name, options, *rest)

        def restarted() -> None:
            self.restarted = self.sim.now
            restart()
            for call in self.memory.get("restarts", []):
                call(self)

        cluster.delete_object = delete_object  # type: ignore[method-assign,assignment]
        cluster.evict_pod = evict_pod  # type: ignore[method-assign,assignment]
        cluster.controllers.restart = restarted  # type: ignore[method-assign]

    def on_restart(self, call: Callable[[World], None]) -> None:
        """Call ``call`` after a restart of kube-controller-manager."""
        self.memory.setdefault("restarts", []).append(call)

    def _note_forced(self, namespace: str, name: str, grace: int | None) -> None:
        self.touched = self.sim.now
        pod = self.store.get("pods", namespace, name)
        if pod is not None and grace == 0:
            self.forced.add(uid_of(pod))


def is_mirror(pod: Object) -> bool:
    return "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {})


def target(pod: Object | None) -> str:
    """Reason of DisruptionTarget if it is True, else empty."""
    for item in (pod or {}).get("status", {}).get("conditions") or []:
        if item["type"] == "DisruptionTarget" and item["status"] == "True":
            return str(item["reason"])
    return ""


def turned(change: Change, type_: str) -> tuple[str, str]:
    """Status of a condition before and after the change."""
    return condition_status(change.before or {}, type_), condition_status(change.object, type_)


def ended_now(change: Change) -> bool:
    """Whether the pod's phase has become terminal."""
    return change.type == "MODIFIED" and is_terminal(change.object) and not is_terminal(change.before or {})

"""Start and restart of a pod's containers: restartPolicy and CrashLoopBackOff.

Facts 1.6 and 18; delays from recordings. pkg/kubelet/kuberuntime/kuberuntime_manager.go doBackOff, pod_workers.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from chaos.lab.apiserver.volumes import can_mount
from chaos.lab.node.kubelet.pod_worker import VolumeMounts, Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.runtime import should_restart
from chaos.lab.node.kubelet.status import PodStatuses
from chaos.lab.node.network import pod_address
from chaos.lab.objects import Object, claims_of, is_deleting

SETTLE = (0.05, 0.6)  # exit of the containers to the kubelet's reaction
_SANDBOX = (0.3, 0.7)
_VOLUMES = (0.5, 0.6)  # between checks whether volumes can be mounted
_RUNNING = (0.03, 0.15)  # start of the container to the patch of Ready
_FAIL = (0.04, 0.1)  # after a reboot: detected exit to Failed
_IN_PLACE = (0.05, 0.2)  # restart of a container in its sandbox
_RELIST = 1.0  # PLEG; assumed from terminated to waiting: no recording has a crash loop
_RESYNC, _JITTER = 60.0, 0.5  # syncFrequency; workerBackOffPeriodJitterFactor
RETRY = (1.0, 2.0)  # without a container runtime


class ContainerStarter:
    """Starts and restarts containers; calls ``ended`` with a worker when its pod ends."""

    def __init__(
        self, process: Process, statuses: PodStatuses, volumes: VolumeMounts, ended: Callable[[Worker], object]
    ) -> None:
        self._process, self._statuses, self._volumes, self._on_end = process, statuses, volumes, ended
        self._store, self._runtime = process.registry.store, process.machine.runtime
        self._addresses = 0

    def start_new(self, worker: Worker) -> None:
        """Start an admitted pod; report at once that it is Pending."""
        late = self._runtime.behaviour(worker.pod).sync_after
        self._process.after_jitter(late + 0.002, late + 0.02, self._statuses.write, worker)
        self.start(worker)

    def start(self, worker: Worker) -> None:
        """Create a sandbox and start all containers in it."""
        pod = self._statuses.pod(worker)
        pull = self._runtime.behaviour(pod).starts_after if pod else 0.0
        low, high = _SANDBOX
        self._process.after_jitter(pull + low, pull + high, self._start_pod, worker)

    def resume(self, worker: Worker) -> None:
        """Continue a pod of an earlier process, whose containers are running, have exited, or were not created."""
        containers = self._runtime.containers(worker.uid)
        if not containers:
            self._statuses.write(worker)
            self.start(worker)
        elif all(container.state == "running" for container in containers):
            worker.state, worker.has_sandbox = "running", True
            self._volumes.keep(worker.uid)
            self._process.has_pod_changes = True
            self._statuses.write(worker)
            self._await_readiness(worker)
            self._watch(worker)
        elif late := self._runtime.behaviour(worker.pod).sync_after:
            self._process.after(late, self._after_exit, worker, worker.pod)
        else:
            self._after_exit(worker, worker.pod)

    def _watch(self, worker: Worker) -> None:
        self._runtime.watch(worker.uid, lambda: self._process.after_jitter(*SETTLE, self._on_exit, worker))

    def _start_pod(self, worker: Worker) -> None:
        pod = self._ready_to_start(worker, self._start_pod)
        if pod is None:
            return
        if claims_of(pod):
            self._volumes.mount(pod)
            if self._volumes.wait_for_driver() or not can_mount(self._store, pod, self._process.node):
                self._process.after_jitter(*_VOLUMES, self._start_pod, worker)
                return
        worker.has_sandbox = True
        self._statuses.write(worker)
        self._addresses += 1
        worker.ip = pod_address(self._process.machine.index, self._addresses)
        self._start_containers(worker, pod)

    def _ready_to_start(self, worker: Worker, retry: Callable[[Worker], object]) -> Object | None:
        """The pod, None if it is not to be started; without a container runtime call ``retry`` later."""
        pod = self._statuses.pod(worker)
        if pod is None or worker.state != "starting":
            return None
        if not self._runtime.is_available:
            self._process.after_jitter(*RETRY, retry, worker)
            return None
        return pod

    def _start_containers(self, worker: Worker, pod: Object) -> None:
        before = {container.name: container.id for container in self._runtime.containers(worker.uid)}
        self._runtime.start(pod)
        images = {item["name"]: item["image"] for item in pod["spec"]["containers"]}
        for container in self._runtime.containers(worker.uid):
            if container.id == before.get(container.name):
                continue
            image = f'Container image "{images[container.name]}" already present on machine'
            self._statuses.emit(pod, "Pulled", f"{image} and can be accessed by the pod")
            self._statuses.emit(pod, "Created", "Container created")
            self._statuses.emit(pod, "Started", "Container started")
        worker.state, worker.crash_backoff = "running", 0.0
        self._process.has_pod_changes = True
        self._watch(worker)
        self._process.after_jitter(*_RUNNING, self._statuses.write, worker)
        self._await_readiness(worker)

    def _await_readiness(self, worker: Worker) -> None:
        """Write the status once the readiness probes of all containers succeed."""
        now = self._process.sim.now
        due = max(container.ready_at for container in self._runtime.containers(worker.uid))
        if now < due < math.inf:
            low, high = _RUNNING
            self._process.after_jitter(due - now + low, due - now + high, self._statuses.write, worker)

    def _on_exit(self, worker: Worker) -> None:
        """Handle the exit of all containers, by themselves or stopped by an earlier process (facts 18)."""
        pod = self._statuses.pod(worker)
        if pod is not None and worker.state == "running":
            worker.state = "starting"
            self._after_exit(worker, pod)

    def _after_exit(self, worker: Worker, pod: Object) -> None:
        """Restart the containers, or end the pod if it is deleted or restartPolicy requires that."""
        containers = self._runtime.containers(worker.uid)
        itself = all(container.has_own_exit for container in containers)
        if not itself:
            worker.ip, worker.has_sandbox = "", False
        if is_deleting(pod) or not any(should_restart(pod, container) for container in containers):
            if not itself:
                self._statuses.write(worker)
            worker.state = "stopping"
            self._process.after_jitter(*_FAIL, self._on_end, worker)
            return
        worker.has_sandbox = itself
        self._statuses.write(worker)
        if itself:
            self._restart_in_place(worker)
            return
        self._statuses.emit(pod, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        self.start(worker)

    def _restart_in_place(self, worker: Worker) -> None:
        """Restart the containers in their sandbox, or wait: one round of a pod worker after a crash."""
        pod = self._ready_to_start(worker, self._restart_in_place)
        if pod is None:
            return
        now = self._process.sim.now
        ended = max(container.finished_at or now for container in self._runtime.containers(worker.uid))
        remaining = worker.backoff.remaining(ended, now, self._process.rules.pods.crash_loop_backoff)
        if remaining > 0:
            self._wait(worker, pod, remaining)
            return
        worker.backoff.advance(ended, now, self._process.rules.pods.crash_loop_backoff)
        self._process.after_jitter(*_IN_PLACE, self._restart, worker)

    def _restart(self, worker: Worker) -> None:
        pod = self._ready_to_start(worker, self._restart)
        if pod is not None:
            self._start_containers(worker, pod)

    def _wait(self, worker: Worker, pod: Object, remaining: float) -> None:
        """Report CrashLoopBackOff; the next round comes at the end of the back-off, or after 1 min, with jitter."""
        where = f"{worker.name}_{worker.namespace}({worker.uid})"
        for container in self._runtime.containers(worker.uid):
            text = f"Back-off restarting failed container {container.name} in pod {where}"
            self._statuses.emit(pod, "BackOff", text, type_="Warning")
        self._process.after(_RELIST, self._report_waiting, worker)
        jitter = 1 + _JITTER * self._process.sim.rng.random()
        self._process.after(min(remaining, _RESYNC) * jitter, self._restart_in_place, worker)

    def _report_waiting(self, worker: Worker) -> None:
        if worker.state == "starting" and worker.has_sandbox:
            worker.crash_backoff = worker.backoff.delay
            self._statuses.write(worker)

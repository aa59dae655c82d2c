"""Pod workers of the kubelet: admit, stop, adopt after a restart, delete. Facts 1.6, 5.7; delays from recordings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chaos.lab.apiserver.store import Change, ConflictError, NotFoundError
from chaos.lab.node.kubelet.admission import Admission, Pressure
from chaos.lab.node.kubelet.container_start import RETRY, SETTLE, ContainerStarter
from chaos.lab.node.kubelet.pod_worker import Cause, State, VolumeMounts, Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.static_pods import ManifestCheck, MirrorPods, is_mirror
from chaos.lab.node.kubelet.status import PREEMPTED, PodStatuses, disruption_target, shutdown_cause
from chaos.lab.objects import Object, condition, is_deleting, is_terminal, name_of, namespace_of, set_condition, uid_of

_WATCH = (0.003, 0.012)  # change to reaction


class PodWorkers:
    """Runs the pods of the node, writes their status, and deletes their objects once their containers have exited."""

    def __init__(self, process: Process, pressure: Pressure, volumes: VolumeMounts) -> None:
        self._rules = process.rules.pods
        self._process, self._admission, self._volumes = process, Admission(process, pressure), volumes
        self._store, self._runtime = process.registry.store, process.machine.runtime
        self._workers: dict[str, Worker] = {}
        self._statuses = PodStatuses(process)
        self._starter = ContainerStarter(process, self._statuses, volumes, self._on_stop)
        self._mirrors = MirrorPods(process, self._statuses.write)
        self._manifests = ManifestCheck(process, self._workers, self._mirrors, self._start_static, self._stop)
        self._is_synced = False

    def start(self) -> None:
        """Start static pods immediately, other pods with the first list of the API server."""
        self._runtime.finish_lost_containers(self._process.start_time)
        self._manifests.begin()
        self._process.link.send("list", self._list)

    def _start_static(self, pod: Object) -> None:
        worker = self._new_worker(pod, "starting")
        worker.is_static = True
        self._process.after_jitter(0.2, 0.3, self._mirrors.ensure, worker)
        has_containers = self._runtime.containers(worker.uid)
        self._process.after_jitter(0.3, 0.6, self._starter.resume if has_containers else self._admit, worker)

    def _list(self) -> None:
        """Handle the first list: adopt running and ended pods, start new ones, kill unknown ones."""
        self._is_synced = True
        self._process.link.on_up.append(self._relist)
        known = set(self._workers)
        for pod in self._bound_pods():
            known.add(uid_of(pod))
            self._process.after_jitter(0.0, 0.3, self._adopt, namespace_of(pod), name_of(pod), uid_of(pod))
        for uid in sorted({*self._runtime.pods(), *self._runtime.mounts} - known):
            self._runtime.remove(uid)
            self._volumes.release(uid)
        self._process.after(self._rules.sync_period, self._reconcile)

    def _bound_pods(self) -> list[Object]:
        """Pods of the node in the API server, without mirror pods."""
        return [pod for pod in self._store.pods_on(self._process.node) if not is_mirror(pod)]

    def on_change(self, change: Change) -> None:
        """Handle a change of a pod of this node; changes during a broken watch are handled by the next list."""
        if not self._is_synced or not self._process.link.is_up:
            return
        pod = change.object
        if is_mirror(pod):
            self._process.after_jitter(*_WATCH, self._mirrors.on_change, pod, self._workers.values())
        elif change.type == "DELETED":
            self._process.after_jitter(*_WATCH, self._on_pod_removal, pod)
        elif is_deleting(pod) or uid_of(pod) not in self._workers:  # else a status write of this kubelet
            self._process.after_jitter(*_WATCH, self._observe, namespace_of(pod), name_of(pod), uid_of(pod))

    def _relist(self) -> None:
        """Handle changes missed by a broken watch, and rewrite Ready=False of other writers (recording 07)."""
        pods = {uid_of(pod): pod for pod in self._bound_pods()}
        for uid, pod in pods.items():
            self._process.after_jitter(*_WATCH, self._observe, namespace_of(pod), name_of(pod), uid)
        for worker in list(self._workers.values()):
            if worker.is_static:
                self._mirrors.ensure(worker)
            elif worker.uid not in pods:
                self._process.after_jitter(*_WATCH, self._release_worker, worker)
            elif worker.state == "running":
                self._statuses.write(worker)

    def report(self, uid: str) -> None:
        """Write the status of a pod."""
        if (worker := self._workers.get(uid)) is not None:
            self._statuses.write(worker)

    def active_pods(self) -> list[Worker]:
        """Workers of pods that have not ended. KP GetActivePods."""
        return [worker for worker in self._workers.values() if worker.state != "ended"]

    def restore(self) -> None:
        """Run the pods again that the kubelet has ended, which no real kubelet does."""
        for worker in self._workers.values():
            if worker.state == "ended" and worker.cause is not None:
                worker.state, worker.cause, worker.has_sandbox = "starting", None, False
                self._runtime.remove(worker.uid)
                self._starter.start_new(worker)

    def kill_for_shutdown(self, worker: Worker, grace: int, done: Callable[[Worker], object]) -> None:
        """Stop a pod for the node's shutdown. A stop in progress is not shortened: the runtime keeps the first grace
        period (recordings 16 and 27, against the deduction of facts 1.6)."""
        worker.waiters.append(done)
        if worker.state != "stopping":
            worker.cause = shutdown_cause(self._rules)
            self._write_early(worker)
            self._stop(worker, float(grace))

    def _write_early(self, worker: Worker) -> None:
        """Write what the rules have before a pod's containers end: nothing, for a real kubelet."""
        if self._rules.disruption_target_before_end:
            now, target = self._process.sim.timestamp(), disruption_target(self._rules, self._rules.shutdown_message)
            self._store.patch_status("pods", worker.namespace, worker.name, lambda pod: set_condition(pod, target, now))
        if self._rules.ends_before_stop:
            self._statuses.write(worker, final=True)

    def evict(self, worker: Worker, message: str, disruption: str) -> None:
        """End a pod for node pressure, or for a limit that the pod exceeds; hard thresholds allow 1 s of grace."""
        rules = self._process.rules.node_pressure
        worker.cause = Cause(rules.evicted_reason, message, disruption)
        self._statuses.emit(worker.pod, rules.evicted_reason, message, type_="Warning")
        self._stop(worker, rules.eviction_grace_period)

    def _observe(self, namespace: str, name: str, uid: str) -> None:
        pod = self._store.get("pods", namespace, name)
        if pod is None or uid_of(pod) != uid:
            return
        if (worker := self._workers.get(uid)) is None:
            self._add(pod)
        elif is_deleting(pod) and worker.state in ("starting", "running"):
            self._stop(worker, float(pod["metadata"]["deletionGracePeriodSeconds"]))
        elif is_deleting(pod) and worker.state == "stopping":
            self._runtime_stop(worker, pod, float(pod["metadata"]["deletionGracePeriodSeconds"]))
        elif is_deleting(pod) and worker.state == "ended":
            self._schedule_delete(worker)

    def _new_worker(self, pod: Object, state: State) -> Worker:
        spec = pod["spec"]
        grace = spec.get("terminationGracePeriodSeconds")
        worker = Worker(pod, uid_of(pod), namespace_of(pod), name_of(pod), spec.get("priority") or 0, grace, state)
        worker.ip = str(pod.get("status", {}).get("podIP") or "")
        self._workers[worker.uid] = worker
        return worker

    def _add(self, pod: Object) -> None:
        """Admit or reject a pod that is new to this process."""
        if is_terminal(pod) or is_deleting(pod):
            worker = self._new_worker(pod, "ended" if is_terminal(pod) else "stopping")
            if is_deleting(pod):
                self._schedule_delete(worker)
            return
        self._admit(self._new_worker(pod, "starting"))

    def _admit(self, worker: Worker) -> None:
        result = self._admission.admit(worker, [other for other in self.active_pods() if other is not worker])
        if result.reason and self._process.may_reject(result.reason):
            worker.state = "ended"
            self._statuses.reject(worker, result.reason, result.message)
        elif not result.reason:
            self._preempt(list(result.victims), worker)

    def _preempt(self, victims: list[Worker], worker: Worker) -> None:
        """End the victims one after the other, then start the pod that needs their resources."""
        if worker.state != "starting":
            return
        if not victims:
            self._starter.start_new(worker)
            return
        victim, rest = victims[0], victims[1:]
        if victim.state == "ended":
            self._preempt(rest, worker)
            return
        victim.waiters.append(lambda _: self._preempt(rest, worker))
        if victim.state != "stopping":
            victim.cause = PREEMPTED
            self._statuses.emit(victim.pod, PREEMPTED.reason, PREEMPTED.message, type_="Warning")
            default, grace = self._rules.default_termination_grace_period_seconds, victim.termination_grace
            self._stop(victim, float(default if grace is None else grace))

    def _stop(self, worker: Worker, grace: float) -> None:
        pod = self._statuses.pod(worker)
        if pod is None:
            self._release_worker(worker)
            return
        if worker.state != "stopping":
            worker.state = "stopping"
            for container in self._runtime.containers(worker.uid):
                if container.state == "running":
                    self._statuses.emit(pod, "Killing", f"Stopping container {container.name}")
            if is_deleting(pod) and self._rules.removes_while_running:
                self._process.after_jitter(*self._rules.removal_delay, self._delete, worker)
        self._runtime_stop(worker, pod, grace)

    def _runtime_stop(self, worker: Worker, pod: Object, grace: float) -> None:
        if not self._runtime.is_available:
            self._process.after_jitter(*RETRY, self._runtime_stop, worker, pod, grace)
            return
        self._runtime.stop(pod, grace, lambda: self._process.after_jitter(*SETTLE, self._on_stop, worker))

    def _on_stop(self, worker: Worker) -> None:
        """Handle the exit of all containers: write the terminal status, and delete the object of a deleted pod."""
        if worker.state == "ended":
            return
        worker.state, worker.has_sandbox = "ended", False
        self._statuses.write(worker, final=True)
        if late := self._rules.disruption_target_delay:
            self._process.after(late, self._statuses.write, worker, True)
        self._volumes.release(worker.uid, worker.mark_unmounted)
        worker.call_waiters()
        pod = self._statuses.pod(worker)
        if pod is not None and is_deleting(pod):
            self._schedule_delete(worker)

    def _schedule_delete(self, worker: Worker) -> None:
        """Delete the object of a deleted pod, once, after its volumes are unmounted."""
        if self._rules.removes_deleted and not worker.is_removing:
            worker.is_removing = True
            self._process.after_jitter(*self._rules.removal_delay, self._delete, worker)

    def _delete(self, worker: Worker) -> None:
        send = partial(self._process.link.send, ("delete", worker.uid), self._delete_now, worker)
        self._volumes.when_released(worker.uid, send)

    def _delete_now(self, worker: Worker) -> None:
        if self._statuses.pod(worker) is None:
            return
        try:
            self._process.registry.delete("pods", worker.namespace, worker.name, 0, {"uid": worker.uid})
        except (NotFoundError, ConflictError):
            return  # deleted by another client

    def _on_pod_removal(self, pod: Object) -> None:
        if (worker := self._workers.get(uid_of(pod))) is not None:
            self._release_worker(worker)

    def _release_worker(self, worker: Worker) -> None:
        """Kill the containers of a removed pod with minimal grace (facts 10), while a shutdown waits for it."""
        self._workers.pop(worker.uid, None)
        running = any(item.state == "running" for item in self._runtime.containers(worker.uid))
        self._process.after(float(self._rules.removed_grace_period_seconds) if running else 0.0, self._forget, worker)

    def _forget(self, worker: Worker) -> None:
        self._runtime.remove(worker.uid)
        self._volumes.when_released(worker.uid, partial(self._end_forgotten, worker))

    def _end_forgotten(self, worker: Worker) -> None:
        worker.mark_unmounted()
        worker.call_waiters()

    def _adopt(self, namespace: str, name: str, uid: str) -> None:
        """Adopt a pod that was bound to the node before this process started."""
        pod = self._store.get("pods", namespace, name)
        if pod is None or uid_of(pod) != uid or uid in self._workers:
            return
        containers = self._runtime.containers(uid)
        if is_terminal(pod):
            self._adopt_ended(self._new_worker(pod, "ended"), pod)
        elif not containers:
            self._add(pod)
        else:
            worker = self._new_worker(pod, "starting")
            self._starter.resume(worker)
            if worker.state == "running":
                self._observe(namespace, name, uid)

    def _adopt_ended(self, worker: Worker, pod: Object) -> None:
        """Adopt an ended pod; a rejected one gets the conditions that its rejection removed (recordings 16 and 27)."""
        if condition(pod, "Ready") is None:
            self._statuses.write(worker, final=True)
        else:
            self._statuses.drop_address(worker)
        self._volumes.when_released(worker.uid, worker.mark_unmounted)
        if is_deleting(pod):
            self._schedule_delete(worker)

    def _reconcile(self) -> None:
        """Rewrite statuses that other writers changed, such as Ready=False of the node controller (facts 5.3)."""
        running = (worker for worker in self._workers.values() if worker.state == "running")
        if self._process.sim.now - self._process.link.last_read > self._rules.stops_without_api_server_after:
            for worker in list(running):
                self._stop(worker, self._rules.minimum_grace_period_seconds)
        if self._process.has_pod_changes or not self._process.link.is_up:
            self._process.has_pod_changes = False  # until one is written
            self._statuses.write_changed(list(running))
        elif any(running):
            self._process.link.on_frame()
        self._process.after(self._rules.sync_period, self._reconcile)

"""Pod status of the kubelet: conditions, phase and container statuses from the state of the runtime.

Facts 1.6 and 5.7; fields, messages and order from the recordings. Only fields of the kubelet are written.
Status writes, rejections and events of pods, from the kubelet to the API server.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from chaos.lab.apiserver.pods import observed_generation
from chaos.lab.node.kubelet.pod_worker import Cause, Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.node.kubelet.runtime import Container, should_restart
from chaos.lab.objects import Object, is_terminal, uid_of
from chaos.lab.rules.node import PodRules
from chaos.lab.sim import rfc3339
from chaos.lab.spec import LabSpec

PREEMPTED = Cause(
    "Preempting",
    "Preempted in order to admit critical pod",
    "Pod was preempted by Kubelet to accommodate a critical pod.",
)
_OWNED_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_NEVER_RAN = 137


class View(NamedTuple):
    """Input for a status. ``is_final``: the pod ends now. ``cause``: set if the kubelet ended the pod.

    ``crash_backoff``: delay until exited containers are restarted.
    The phase of an ended static pod is Failed for any exit code, and can leave Failed (KP getPhase; facts 1.6).
    """

    containers: list[Container]
    spec: LabSpec
    rules: PodRules
    host_ip: str
    pod_ip: str = ""
    has_sandbox: bool = False
    is_final: bool = False
    is_static: bool = False
    cause: Cause | None = None
    crash_backoff: float = 0.0


def shutdown_cause(rules: PodRules) -> Cause:
    """Why a pod ends in a node's shutdown."""
    return Cause(rules.shutdown_reason, rules.shutdown_message, rules.shutdown_message)


def disruption_target(rules: PodRules, message: str) -> dict[str, Any]:
    """DisruptionTarget of the kubelet."""
    reason = rules.disruption_target_reason
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}


def write_status(pod: Object, view: View, now: float) -> None:
    """Replace the kubelet's fields of the pod's status."""
    generation = observed_generation(pod, view.spec)
    status = pod.setdefault("status", {})
    has_ended, phase = is_terminal(pod), _phase(pod, view)
    if view.is_static and not view.is_final:
        status.pop("reason", None)
        status.pop("message", None)
    status.update(generation, phase=phase, hostIP=view.host_ip, hostIPs=[{"ip": view.host_ip}])
    status.setdefault("startTime", rfc3339(now))
    for key, value in (("podIP", view.pod_ip), ("podIPs", [{"ip": view.pod_ip}] if view.pod_ip else None)):
        if value:
            status[key] = value
        else:
            status.pop(key, None)
    status["containerStatuses"] = _containers(pod, view, now)
    ready = bool(view.containers) and all(_is_ready(item, now) for item in view.containers)
    extra: dict[str, dict[str, Any]] = {}
    if view.is_final and view.cause is not None:
        late = bool(view.rules.disruption_target_delay) and not has_ended
        if view.rules.adds_disruption_target and view.cause.disruption and not late:
            extra["DisruptionTarget"] = disruption_target(view.rules, view.cause.disruption)
        if phase == "Failed" or view.rules.reason_on_succeeded:
            status.update(reason=view.cause.reason, message=view.cause.message)
    observed = generation.get("observedGeneration")
    desired = _conditions(view.has_sandbox, view.rules.failed_pods_stay_ready, phase, _unready(pod, ready))
    _write_conditions(status, {**desired, **extra} if extra else desired, observed, rfc3339(now))


def write_rejection(pod: Object, spec: LabSpec, reason: str, message: str, now: float) -> None:
    """Write the status of a rejected pod: Failed, without the kubelet's conditions (facts 1.6)."""
    status = pod.setdefault("status", {})
    status.update(
        phase="Failed",
        reason=reason,
        message=f"Pod was rejected: {message}",
        **observed_generation(pod, spec),
        startTime=rfc3339(now),
    )
    status["conditions"] = [item for item in status.get("conditions") or [] if item["type"] not in _OWNED_CONDITIONS]
    if not status["conditions"]:
        del status["conditions"]


def _phase(pod: Object, view: View) -> str:
    current = str(pod.get("status", {}).get("phase", "Pending"))
    if current in ("Succeeded", "Failed") and not view.is_static:
        return current
    if view.is_final and view.is_static:
        return "Failed"
    if view.is_final:
        codes = [item.exit_code for item in view.containers]
        return "Succeeded" if codes and not (view.rules.exit_codes_count and any(codes)) else "Failed"
    return "Running" if view.containers else "Pending"


def _unready(pod: Object, is_ready: bool) -> str | None:
    """Names of the containers if they are not ready."""
    return None if is_ready else " ".join(item["name"] for item in pod["spec"]["containers"])


@lru_cache(maxsize=1024)
def _conditions(has_sandbox: bool, stays_ready: bool, phase: str, unready: str | None) -> dict[str, dict[str, Any]]:
    """Conditions shared by all pods in this state; never changed in place. ``unready``: names of its containers."""
    ready: dict[str, Any] = {"status": "True"}
    if phase == "Failed" and stays_ready:
        pass
    elif phase in ("Succeeded", "Failed"):
        ready = {"status": "False", "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    elif unready is not None:
        message = f"containers with unready status: [{unready}]"
        ready = {"status": "False", "reason": "ContainersNotReady", "message": message}
    sandbox = has_sandbox and phase not in ("Succeeded", "Failed")
    initialized = {"status": "True", "reason": "PodCompleted"} if phase == "Succeeded" else {"status": "True"}
    return {
        "PodReadyToStartContainers": {"status": "True" if sandbox else "False"},
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": dict(ready),
        "PodScheduled": {"status": "True"},
    }


def _write_conditions(
    status: dict[str, Any], desired: dict[str, dict[str, Any]], generation: int | None, now: str
) -> None:
    """Write the kubelet's conditions in its order, then those of other writers."""
    old = {item["type"]: item for item in status.get("conditions") or []}
    new: list[dict[str, Any]] = []
    for type_, body in desired.items():
        before = old.pop(type_, None)
        is_same = before is not None and before["status"] == body["status"]
        transition = (before.get("lastTransitionTime") if before and is_same else None) or now
        new.append(_condition(type_, generation, transition, *body.items()))
    status["conditions"] = [*new[: len(_OWNED_CONDITIONS)], *old.values(), *new[len(_OWNED_CONDITIONS) :]]


@lru_cache(maxsize=4096)
def _condition(type_: str, generation: int | None, transition: str, *body: tuple[str, str]) -> dict[str, Any]:
    """Condition shared by all pods with equal values; never changed in place."""
    return {
        "type": type_,
        **({} if generation is None else {"observedGeneration": generation}),
        "lastProbeTime": None,
        "lastTransitionTime": transition,
        **dict(body),
    }


def _is_ready(container: Container, now: float) -> bool:
    """Whether the container runs and its readiness probe succeeds."""
    return container.state == "running" and container.ready_at <= now


def _containers(pod: Object, view: View, now: float) -> list[dict[str, Any]]:
    known = {item.name: item for item in view.containers}
    return [_container(pod, item, known.get(item["name"]), view, now) for item in pod["spec"]["containers"]]


def _container(pod: Object, spec: Object, container: Container | None, view: View, now: float) -> dict[str, Any]:
    body: dict[str, Any] = {"name": spec["name"], "image": spec["image"], "imageID": "", "lastState": {}}
    if container is None:
        state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        if view.is_final:
            state = {"terminated": {"exitCode": _NEVER_RAN, "reason": "ContainerStatusUnknown"}}
        return {**body, "state": state, "ready": False, "restartCount": 0, "started": False}
    running = container.state == "running"
    state = {"running": {"startedAt": rfc3339(container.started_at)}} if running else _terminated(container)
    last = _terminated(container.last) if container.last else {}
    if view.crash_backoff and not running and should_restart(pod, container):
        meta = pod["metadata"]
        where = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
        message = f"back-off {go_duration(view.crash_backoff)} restarting failed container={container.name} pod={where}"
        state, last = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}, state
    body.update(
        containerID=container.id,
        imageID=f"sha256:{spec['image']}",
        state=state,
        lastState=last,
        ready=_is_ready(container, now) and not view.is_final,
        restartCount=container.restart_count,
        started=running,
    )
    return body


def _terminated(container: Container) -> dict[str, Any]:
    body: dict[str, Any] = {
        "exitCode": container.exit_code,
        "reason": container.reason,
        "startedAt": rfc3339(container.started_at),
        "containerID": container.id,
    }
    if container.finished_at is not None:
        body["finishedAt"] = rfc3339(container.finished_at)
    return {"terminated": body}


def go_duration(seconds: float) -> str:
    """Format whole seconds as a Go duration: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


class PodStatuses:
    """Writes statuses by the pods that this process has seen last, which are outdated while the API is unreachable."""

    def __init__(self, process: Process) -> None:
        self._process, self._store = process, process.registry.store

    def pod(self, worker: Worker) -> Object | None:
        """Pod object of the worker, None if it was removed."""
        if worker.is_static or not self._process.link.is_up:
            return worker.pod
        pod = self._store.get("pods", worker.namespace, worker.name)
        if pod is None or uid_of(pod) != worker.uid:
            return None
        worker.pod = pod
        return pod

    def write(self, worker: Worker, final: bool = False) -> None:
        """Write the status. ``final``: the pod has ended."""
        self._process.link.send(("status", worker.uid), self._write_now, worker, final)

    def write_changed(self, workers: Sequence[Worker]) -> None:
        """Write the statuses that have changed since their last write: few of those of every sync, every 10 s."""
        link = self._process.link
        for worker in workers:
            if link.is_up and self._store.get("pods", worker.namespace, worker.name) is worker.last_written_pod:
                link.on_frame()
            else:
                self.write(worker)

    def reject(self, worker: Worker, reason: str, message: str) -> None:
        """Write phase Failed for a pod that is not admitted."""
        self._process.metrics.reject(reason)
        self.emit(worker.pod, reason, message, type_="Warning")
        self._process.link.send(("status", worker.uid), self._reject_now, worker, reason, message)

    def _reject_now(self, worker: Worker, reason: str, message: str) -> None:
        now, spec = self._process.sim.now, self._process.spec

        def change(pod: Object) -> None:
            write_rejection(pod, spec, reason, message, now)

        self._store.patch_status("pods", worker.namespace, worker.name, change)

    def drop_address(self, worker: Worker) -> None:
        """Remove the IP address of a pod that ended before this process started."""

        def change(pod: Object) -> None:
            pod["status"].pop("podIP", None)
            pod["status"].pop("podIPs", None)

        self._store.patch_status("pods", worker.namespace, worker.name, change)

    def emit(self, pod: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Send an event about the pod."""
        self._process.emit("Pod", pod, reason, message, type_=type_)

    def _write_now(self, worker: Worker, final: bool) -> None:
        pod = self.pod(worker)
        if pod is None or (worker.state in ("stopping", "ended") and not final):
            return
        machine = self._process.machine
        containers, now = machine.runtime.containers(worker.uid), self._process.sim.now
        known = [(item.id, item.state, item.finished_at, item.ready_at <= now) for item in containers]
        state = (known, worker.ip, worker.has_sandbox, final, worker.cause, worker.crash_backoff)
        if pod is worker.last_written_pod and state == worker.last_written_inputs:
            return  # unchanged
        view = View(
            containers, self._process.spec, self._process.rules.pods, machine.address, worker.ip, worker.has_sandbox,
            final, worker.is_static, worker.cause, worker.crash_backoff,
        )  # fmt: skip
        written = self._store.patch_status(
            "pods", worker.namespace, worker.name, lambda pod: write_status(pod, view, now)
        )
        worker.last_written_inputs, worker.last_written_pod = state, written
        if written is not None and not worker.is_static:
            worker.pod = written  # and the version before is freed

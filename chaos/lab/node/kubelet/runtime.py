"""Container runtime of one machine: containers outlive the kubelet's process, but not a loss of power."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from chaos.lab.apiserver.admission import PREFIX
from chaos.lab.objects import Object, name_of, namespace_of, uid_of
from chaos.lab.sim import SimClock, Timer

# What a container reads from the disk until it is ready, an assumption: what follows from it is only that it is late.
_READS, _READ_BYTES = 400, 8 << 20
_KILLED = 137
_LOST = 255


@dataclass(slots=True)
class Container:
    """``finished_at`` is None while the container runs, and after a power cut until the runtime is back.

    ``ends_at``: time at which it ends by itself. ``exits_at``: time of its exit once it is being stopped.
    """

    name: str
    id: str
    started_at: float
    restart_count: int
    state: Literal["running", "exited"] = "running"
    finished_at: float | None = None
    exit_code: int = 0
    reason: str = ""
    ends_at: float | None = None
    exits_at: float | None = None
    own_exit: tuple[float, int] | None = None  # time and exit code of the exit after SIGTERM, without SIGKILL
    timer: Timer | None = None
    last: Container | None = None
    ready_at: float = 0.0  # time from which its readiness probe succeeds

    @property
    def has_own_exit(self) -> bool:
        """Whether the container exited by itself: neither stopped nor killed by a loss of power."""
        return self.state == "exited" and self.exits_at is None and self.reason != "Unknown"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of a pod's containers by its annotations: slow start, end by themselves, reaction to SIGTERM.

    ``own_code``: exit code of containers that end by themselves, None for ``exit_code``. ``sync_after``: delay of the
    kubelet's first status of the pod. ``exceeds_limit_after``: from then on they hold more than their emptyDir may.
    """

    starts_after: float
    runs_for: float | None
    stops_after: float
    exit_code: int
    ignores_sigterm: bool
    ready_after: float = 0.0
    own_code: int | None = None
    sync_after: float = 0.0
    exceeds_limit_after: float = math.inf


_DEFAULT = Behaviour(0.0, None, 0.0, 0, ignores_sigterm=False)


def behaviour_of(pod: Object) -> Behaviour:
    """Read the annotations lab.nodefall.dev/starts-after, ready-after, runs-for, stops-after, exit-code and so on."""
    annotations = pod["metadata"].get("annotations")
    if not annotations:
        return _DEFAULT
    runs_for = annotations.get(PREFIX + "runs-for")
    return Behaviour(
        float(annotations.get(PREFIX + "starts-after", 0)),
        None if runs_for is None else float(runs_for),
        float(annotations.get(PREFIX + "stops-after", 0)),
        int(annotations.get(PREFIX + "exit-code", 0)),
        annotations.get(PREFIX + "ignores-sigterm") == "true",
        float(annotations.get(PREFIX + "ready-after", 0)),
        exceeds_limit_after=float(annotations.get(PREFIX + "exceeds-limit-after", math.inf)),
    )


@dataclass(frozen=True, slots=True)
class DiskLimit:
    """A control group's disk limits per second, for reads and for writes."""

    bytes: float
    operations: float

    def seconds(self, operations: float, size: float) -> float:
        """That so many operations with so many bytes in all take."""
        return max(operations / self.operations, size / self.bytes)


class Runtime:
    """Containers by pod uid. ``is_available``: the service runs; without it containers run on, but send no events.

    ``behaviour`` is by annotations, and can be replaced.
    """

    def __init__(self, sim: SimClock, minimum_grace: float) -> None:
        self.is_available = True
        self._minimum_grace = minimum_grace
        self.unavailable_since = 0.0
        self.on_stop: Callable[[], object] = lambda: None
        self._sim = sim
        self._pods: dict[str, list[Container]] = {}
        self.names: dict[str, tuple[str, str]] = {}  # namespace and name by pod uid
        self.mounts: dict[
            str, list[str]
        ] = {}  # on disk: unique names of volumes by pod uid, from the start of mounting
        self.disk_limit: DiskLimit | None = None  # of all pods together
        self.plugins_lost = False  # the pods of CSI node plugins have ended with the power
        self._exit_waiters: dict[str, Callable[[], object]] = {}
        self.behaviour: Callable[[Object], Behaviour] = behaviour_of

    def stop_service(self) -> None:
        """Stop containerd's unit; the shims and their containers run on."""
        if self.is_available:
            self.on_stop()
            self.is_available, self.unavailable_since = False, self._sim.now

    def start_service(self) -> None:
        """Start containerd's unit, which then reports the containers that have exited."""
        self.is_available = True
        for uid in list(self._exit_waiters):
            if all(container.state == "exited" for container in self.containers(uid)):
                self._sim.after(0, self._notify_exit, uid)

    def pods(self) -> list[str]:
        return list(self._pods)

    def containers(self, uid: str) -> list[Container]:
        return self._pods.get(uid, [])

    def exceeds_limit(self, pod: Object) -> bool:
        """Whether a container of the pod has written more than the sizeLimit of its emptyDir."""
        seconds = self.behaviour(pod).exceeds_limit_after
        running = [item for item in self.containers(uid_of(pod)) if item.state == "running"]
        return any(self._sim.now - item.started_at >= seconds for item in running)

    def start(self, pod: Object) -> None:
        """Start every container that is not running and should be; the state of its predecessor is saved."""
        uid = uid_of(pod)
        self.names[uid] = namespace_of(pod), name_of(pod)
        known = {container.name: container for container in self.containers(uid)}
        self._pods[uid] = [
            self._start_one(pod, item["name"], known.get(item["name"])) for item in pod["spec"]["containers"]
        ]

    def stop(self, pod: Object, grace: float, done: Callable[[], object]) -> None:
        """Send SIGTERM, then SIGKILL after ``grace`` seconds; call ``done`` after the last exit.

        Another stop can only shorten the grace period. A preStop sleep is part of it (facts 1.3).
        """
        uid = uid_of(pod)
        limit = self._sim.now + max(grace, self._minimum_grace)
        behaviour = self.behaviour(pod)
        hooks = {item["name"]: _pre_stop(item) for item in pod["spec"]["containers"]}
        self._exit_waiters[uid] = done
        for container in self.containers(uid):
            if container.state == "running":
                self._plan_exit(uid, container, behaviour, hooks.get(container.name, 0.0), limit)
        if all(container.state == "exited" for container in self.containers(uid)):
            self._sim.after(0, self._notify_exit, uid)

    def end(self, uid: str, code: int) -> None:
        """End the running containers of a pod by themselves, now."""
        for container in self.containers(uid):
            if container.state == "running" and container.exits_at is None:
                _cancel(container)
                self._exit(uid, container, code)

    def watch(self, uid: str, done: Callable[[], object]) -> None:
        """Call ``done`` when all containers of a pod have exited whose stop another process started."""
        self._exit_waiters[uid] = done

    def remove(self, uid: str) -> None:
        """Remove a pod; running containers are killed."""
        self.names.pop(uid, None)
        for container in self._pods.pop(uid, []):
            _cancel(container)
        self._exit_waiters.pop(uid, None)

    def forget_waiters(self) -> None:
        """Drop the callbacks of an ended kubelet process; no SIGKILL follows its SIGTERMs.

        containerd cancels a stop whose caller has disconnected (recording 27).
        """
        self._exit_waiters.clear()
        for uid, containers in self._pods.items():
            for container in containers:
                if container.state == "running" and container.exits_at is not None:
                    self._await_own_exit(uid, container)

    def _await_own_exit(self, uid: str, container: Container) -> None:
        _cancel(container)
        container.exits_at = container.own_exit[0] if container.own_exit else None
        if container.own_exit:
            container.timer = self._sim.at(container.own_exit[0], self._exit, uid, container, container.own_exit[1])

    def lose_power(self) -> None:
        """Mark running containers as exited, without a time: 255, Unknown (recording 05)."""
        self._exit_waiters.clear()
        self.plugins_lost, self.disk_limit = True, None
        for containers in self._pods.values():
            for container in containers:
                if container.state == "running":
                    _cancel(container)
                    container.state, container.exit_code, container.reason = "exited", _LOST, "Unknown"

    def finish_lost_containers(self, when: float) -> None:
        """Set the end of containers that were lost with the power."""
        for containers in self._pods.values():
            for container in containers:
                if container.state == "exited" and container.finished_at is None:
                    container.finished_at = when

    def _start_one(self, pod: Object, name: str, before: Container | None) -> Container:
        if before is not None and (before.state == "running" or not should_restart(pod, before)):
            return before
        identity = f"containerd://{self._sim.rng.getrandbits(256):064x}"
        new = Container(name, identity, self._sim.now, 0)
        if before is not None:
            before.last = None
            new.restart_count, new.last = before.restart_count + 1, before
        behaviour = self.behaviour(pod)
        new.ready_at = self._sim.now + behaviour.ready_after
        if self.disk_limit and behaviour.ready_after:  # without a probe a container is ready before it has read
            new.ready_at += self.disk_limit.seconds(_READS, _READ_BYTES)
        if behaviour.runs_for is not None:
            code = behaviour.exit_code if behaviour.own_code is None else behaviour.own_code
            new.ends_at = self._sim.now + behaviour.runs_for
            new.timer = self._sim.at(new.ends_at, self._exit, uid_of(pod), new, code)
        return new

    def _plan_exit(self, uid: str, container: Container, behaviour: Behaviour, hook: float, limit: float) -> None:
        """Schedule the exit after SIGTERM; a second SIGTERM can only bring it forward."""
        if container.exits_at is None:
            ends = [] if behaviour.ignores_sigterm else [self._sim.now + hook + behaviour.stops_after]
            ends += [] if container.ends_at is None else [container.ends_at]
            container.own_exit = (min(ends), behaviour.exit_code) if ends else None
        due, code = container.own_exit or (limit, _KILLED)
        if due > limit:
            due, code = limit, _KILLED
        if container.exits_at is not None and due >= container.exits_at:
            return
        _cancel(container)
        container.exits_at = due
        container.timer = self._sim.at(due, self._exit, uid, container, code)

    def _exit(self, uid: str, container: Container, code: int) -> None:
        container.state, container.finished_at, container.exit_code = "exited", self._sim.now, code
        container.reason = "Completed" if code == 0 else "Error"
        if all(other.state == "exited" for other in self.containers(uid)):
            self._notify_exit(uid)

    def _notify_exit(self, uid: str) -> None:
        if self.is_available and (done := self._exit_waiters.pop(uid, None)) is not None:
            done()


def should_restart(pod: Object, container: Container) -> bool:
    """Whether restartPolicy requires a restart of the exited container. KP ShouldContainerBeRestarted."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and container.exit_code != 0)


def _cancel(container: Container) -> None:
    if container.timer is not None:
        container.timer.cancel()


def _pre_stop(container: Object) -> float:
    hook = (container.get("lifecycle") or {}).get("preStop") or {}
    return float((hook.get("sleep") or {}).get("seconds", 0))

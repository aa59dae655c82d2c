"""Rules 5, 6 and 7 of facts 16: shutdown state of a kubelet process, its event loop, its buckets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chaos.lab.apiserver.store import Change
from chaos.lab.node.kubelet.pod_worker import buckets_of
from chaos.lab.node.logind import Inhibitor
from chaos.lab.objects import Object, condition, is_deleting, is_terminal, name_of, node_of, uid_of
from chaos.lab.rules import NodeShutdownRules
from tests.kit.invariants_world import Host, World, ended_now, is_mirror

RULES = NodeShutdownRules()

_DETECTED = "Shutdown manager detected shutdown event"
_CANCELLED = "Shutdown manager detected shutdown cancellation"
_START = 0.02  # between two changes of the same event
_LATE = 0.1  # upper limit for handling an event

# Rule 5: state of the process, the file, the gauges.


def shutdown_state_follows_a_signal(world: World, change: Change) -> None:
    """A process reports a shutdown only after a signal to itself; the state file is never lost."""
    if change.plural != "nodes" or (host := world.hosts.get(name_of(change.object))) is None:
        return
    host.had_file = host.had_file or host.file is not None
    if host.had_file and host.file is None:
        world.violated(5, f"{name_of(change.object)}: the state file is lost")
    ready = condition(change.object, "Ready") or {}
    reports_shutdown = ready.get("status") == "False" and "node is shutting down" in ready.get("message", "")
    before = condition(change.before or {}, "Ready") or {}
    fresh = ready.get("lastHeartbeatTime") != before.get("lastHeartbeatTime")
    if reports_shutdown and fresh and host.pid and not any(signal.active for signal in host.signals):
        world.violated(5, f"{name_of(change.object)}: shutting down without a signal to this process")


def gauges(world: World, host: Host) -> None:
    """The gauges of a new process are 0, then those of the file if logind runs."""
    world.sim.after(0.55, _gauge_is, world, host, host.pid, False)
    world.sim.after(3.0, _gauge_is, world, host, host.pid, True)


def _gauge_is(world: World, host: Host, pid: int, reloaded: bool) -> None:
    kubelet, logind = host.machine.kubelet, host.machine.logind
    if host.pid != pid or not pid or kubelet.is_frozen or host.signals or logind.preparing_for_shutdown:
        return
    found = re.search(r"^kubelet_graceful_shutdown_start_time_seconds (\S+)$", kubelet.metrics_text(), re.MULTILINE)
    value = int(float(found[1])) if found else 0
    wanted = (
        host.file[0] if reloaded and logind.is_running and buckets_of(host.machine.spec, RULES) and host.file else 0
    )
    if value != wanted and (host.holds_lock or not reloaded or not logind.is_running):
        world.violated(5, f"{host.machine.name}: gauge of the start is {value}, not {wanted}")


# Rule 6: the event loop.


def event_loop(world: World, change: Change) -> None:
    """Signals are handled in order, a cancellation after the shutdown that it cancels."""
    if change.plural != "events" or change.object["message"] not in (_DETECTED, _CANCELLED) or change.type == "DELETED":
        return
    host = world.hosts.get(change.object["involvedObject"]["name"])
    if host is None or not world.calm(host.machine.name, host.signals[0].at if host.signals else world.sim.now):
        return
    seen: list[bool] = world.memory.setdefault(("seen", host.machine.name, host.pid), [])
    seen.append(change.object["message"] == _DETECTED)
    again = any(signal.active for signal in host.signals[len(seen) :])  # possibly the one that is being processed
    if not seen[-1] and host.busy and not again:
        world.violated(6, f"{host.machine.name}: cancellation handled within the shutdown")
    if (
        not host.lost_signals
        and host.signals[0].at > host.started + 1.0  # it was subscribed
        and seen != [signal.active for signal in host.signals][: len(seen)]
    ):
        world.violated(6, f"{host.machine.name}: signals handled out of order")


def cancellation_is_prompt(world: World, host: Host) -> None:
    """A cancellation is handled at once if no shutdown is being processed."""
    seen = world.memory.get(("seen", host.machine.name, host.pid), [])
    if len(seen) == len(host.signals) - 1 and seen and not host.signals[-1].busy:
        world.sim.after(1.0, _was_cancelled, world, host, host.pid, len(host.signals))


def _was_cancelled(world: World, host: Host, pid: int, number: int) -> None:
    seen = world.memory.get(("seen", host.machine.name, pid), [])
    if (
        host.pid == pid
        and not host.lost_signals
        and len(seen) < number
        and world.calm(host.machine.name, host.signals[0].at)
    ):
        world.violated(6, f"{host.machine.name}: cancellation not handled")


# Rule 7: buckets and the lock.


@dataclass(slots=True)
class _Shutdown:
    """``began``: time of the first stop in each bucket."""

    pid: int
    start: int
    began: dict[int, float] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)


def _bucket(host: Host, pod: Object) -> int:
    fitting = [
        index
        for index, item in enumerate(buckets_of(host.machine.spec, RULES))
        if item.priority <= (pod["spec"].get("priority") or 0)
    ]
    return fitting[-1] if fitting else 0


def _current(world: World, host: Host) -> _Shutdown | None:
    """Shutdown that the host's process is processing."""
    if not host.busy or host.file is None or host.machine.spec.static_pods:
        return None
    known: _Shutdown | None = world.memory.get(("shutdown", host.machine.name))
    if known is None or (known.pid, known.start) != (host.pid, host.file[0]):
        known = world.memory["shutdown", host.machine.name] = _Shutdown(host.pid, host.file[0])
    return known


def buckets(world: World, change: Change) -> None:
    """Pods of a bucket stop at once; the next bucket starts when all have ended or its time is over."""
    if change.plural != "events" or change.object["reason"] != "Killing" or change.type == "DELETED":
        return
    about = change.object["involvedObject"]
    pod = world.store.get("pods", about.get("namespace", ""), about["name"])
    host = world.host_of(pod) if pod is not None and uid_of(pod) == about.get("uid") else None
    if pod is None or host is None or is_deleting(pod) or not world.calm(node_of(pod), host.started + _START):
        return
    shutdown = _current(world, host)
    if shutdown is None or host.machine.pressure or world.sim.now - host.signals[-1].at < _START / 4:
        return
    now, own = world.sim.now, _bucket(host, pod)
    if now - shutdown.began.setdefault(own, now) > 0.5:
        world.violated(7, f"{name_of(pod)}: stopped {now - shutdown.began[own]:.1f} s after the first of its bucket")
    if len(shutdown.stopped) < 1 or own not in shutdown.stopped.values():
        world.sim.after(
            buckets_of(host.machine.spec, RULES)[own].seconds + 1.0,
            _time_is_over,
            world,
            host,
            shutdown,
            own,
        )
    shutdown.stopped[uid_of(pod)] = own
    _lower_are_done(world, host, shutdown, own)
    for other in world.store.list("pods"):
        lower = node_of(other) == node_of(pod) and _bucket(host, other) < own and uid_of(other) not in shutdown.stopped
        if lower and not is_deleting(other) and not is_mirror(other) and host.runs(uid_of(other)):
            world.violated(7, f"{name_of(pod)}: stopped before {name_of(other)} of a lower bucket")


def _lower_are_done(world: World, host: Host, shutdown: _Shutdown, own: int) -> None:
    """Containers and volumes of earlier buckets are gone, unless their time is over."""
    for uid, bucket in shutdown.stopped.items():
        limit = buckets_of(host.machine.spec, RULES)[bucket].seconds
        held = host.runs(uid) or uid in host.machine.runtime.mounts
        if bucket < own and held and world.sim.now - shutdown.began[bucket] < limit - _LATE:
            world.violated(7, f"{host.machine.name}: continues while a bucket's pods run or have volumes")


def _time_is_over(world: World, host: Host, shutdown: _Shutdown, bucket: int) -> None:
    deleted_before = any(  # pods of a later bucket, whose stop was not observed
        is_deleting(pod) and host.runs(uid_of(pod)) and _bucket(host, pod) > bucket
        for pod in world.store.list("pods")
        if node_of(pod) == host.machine.name
    )
    if (
        _current(world, host) is shutdown
        and max(shutdown.began) == bucket
        and not deleted_before
        and world.calm(host.machine.name, host.started + _START)
    ):
        world.violated(7, f"{host.machine.name}: waits for a bucket beyond its time")


def ends_with_the_last_pod(world: World, change: Change) -> None:
    """Empty buckets are skipped: the shutdown ends with the last pod."""
    host = world.host_of(change.object) if change.plural == "pods" else None
    if host is not None and ended_now(change) and (shutdown := _current(world, host)) is not None:
        world.memory["last end", host.machine.name] = world.sim.now
        world.sim.after(2.0, _is_over, world, host, shutdown, world.sim.now)


def _is_over(world: World, host: Host, shutdown: _Shutdown, since: float) -> None:
    left = [pod for pod in world.store.list("pods") if node_of(pod) == host.machine.name and not is_terminal(pod)]
    left = [pod for pod in left if host.machine.runtime.containers(uid_of(pod))]
    recent = any(
        item.finished_at is None or world.sim.now - item.finished_at < 1.9
        for uid in shutdown.stopped
        for item in host.machine.runtime.containers(uid)
    )
    if (
        not left
        and not recent
        and world.memory["last end", host.machine.name] == since
        and _current(world, host) is shutdown
        and world.calm(host.machine.name, host.started + _START)
    ):
        world.violated(7, f"{host.machine.name}: waits though every pod has ended")


def lock_release(world: World, host: Host, _lock: Inhibitor) -> None:
    """The lock is released at once after the last bucket, volumes included, and not before."""
    if not host.machine.kubelet.is_running or host.holds_lock or host.machine.spec.static_pods:
        return
    if host.busy and host.signals and host.signals[-1].active:
        world.violated(7, f"{host.machine.name}: lock released within the shutdown")
    found = host.file
    if found is None or not host.signals or not host.signals[-1].active:
        return
    if found[1] and world.sim.now - found[1] > 2.0:
        world.violated(7, f"{host.machine.name}: lock released {world.sim.now - found[1]:.0f} s after the end")
    shutdown: _Shutdown | None = world.memory.get(("shutdown", host.machine.name))
    if shutdown is None or (shutdown.pid, shutdown.start) != (host.pid, found[0]):
        return
    _lower_are_done(world, host, shutdown, len(buckets_of(host.machine.spec, RULES)))

"""Kubelets of the lab that register nodes as slowly as recorded ones: what was ready last, and when, was chance.
Containers of the lab that start and end as those of the recorded pods that they stand for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.apiserver_link import MESSAGES, Registration
from chaos.lab.node.kubelet.runtime import Behaviour, Runtime, behaviour_of
from chaos.lab.node.kubelet.static_pods import is_mirror
from chaos.lab.objects import (
    Object,
    claims_of,
    condition,
    controller_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from chaos.lab.recorded.pod_lives import INFERRED, PodLife, longest_sleep, pod_lives
from chaos.lab.recorded.recording import Observation, Recording
from chaos.lab.snapshot.restored import owner_of
from tools.replay.states import MERGE_WINDOW


def follow_registrations(cluster: Cluster, recording: Recording) -> None:
    """Let registrations of nodes from now on take as long as the recorded ones."""
    for name, machine in cluster.machines.items():
        machine.kubelet.registrations += registrations(recording, name)


def registrations(recording: Recording, node: str) -> list[Registration | None]:
    """Registrations of the node in order; None for one too short to be a state."""
    items = [item for item in recording.observations["nodes"] if name_of(item.object) == node]
    return [_registration(items[index:]) for index, item in enumerate(items) if item.type == "ADDED"]


def _registration(items: list[Observation]) -> Registration | None:
    first = condition(items[0].object, "Ready") or {}
    if first.get("status") != "False" or first.get("message") not in MESSAGES:
        return None
    changed = (item for item in items[1:] if (condition(item.object, "Ready") or {}).get("status") != "False")
    seconds = next((item.t - items[0].t for item in changed), 0.0)
    return Registration(first["message"], seconds) if seconds > MERGE_WINDOW else None


_START = 0.6  # mean seconds that the lab's kubelet takes to start containers
_SLOW = 1.5  # seconds; a start that takes longer is repeated
_NEVER = 1e9  # seconds
_FIRST_SYNC = 1.3  # mean seconds from the start of the lab's kubelet to its first status of a pod
_LATE = 1.0  # seconds; a first status that comes later is repeated
_BRIEF = 0.5  # seconds from running to Ready that need no repetition


def follow_containers(cluster: Cluster, recording: Recording) -> None:
    """Make the containers of a cluster behave as recorded. Those that wait for volumes start when they can."""
    recorded = RecordedContainers(recording)
    for machine in cluster.machines.values():
        machine.runtime.behaviour = partial(recorded.behaviour, machine.runtime)


class RecordedContainers:
    """Pods of the first list stand for themselves, others for the next one of their owner on their node."""

    def __init__(self, recording: Recording) -> None:
        self._lives = pod_lives(recording)
        self._repeats_stops = INFERRED in recording.meta
        self._new: dict[tuple[str, ...], list[PodLife]] = {}
        self._chosen: dict[str, PodLife | None] = {}
        self._static = {
            (namespace_of(life.pod), name_of(life.pod)): life
            for life in self._lives.values()
            if life.is_initial and is_mirror(life.pod)
        }
        for life in self._lives.values():
            if not life.is_initial:
                self._new.setdefault(_key(life.pod), []).append(life)

    def behaviour(self, runtime: Runtime, pod: Object) -> Behaviour:
        """Behaviour of the pod in the run that would begin now, or that ends now."""
        base, life = behaviour_of(pod), self._life(pod)
        if life is None:
            return base
        containers = runtime.containers(uid_of(pod))
        number = max((item.restart_count + (item.state == "exited") for item in containers), default=0)
        if life.stop is not None and self._repeats_stops and not base.ignores_sigterm:
            delay, code = life.stop
            base = replace(base, exit_code=code, stops_after=max(0.0, delay - longest_sleep(pod)))
        if number < len(life.runs):
            return self._in_run(base, life, number, pod)
        if life.runs and life.runs[-1].ended is not None:
            return replace(base, ready_after=_NEVER)  # it crashed, and waited until the recording's end
        return _with_sync(base, life.last_sync, number)

    def _in_run(self, base: Behaviour, life: PodLife, number: int, pod: Object) -> Behaviour:
        run = life.runs[number]
        if run.is_old:
            return replace(base, ready_after=0.0)  # it ends by an operation
        base = _with_sync(base, run.sync, number)
        if run.delay > _SLOW and not claims_of(pod):
            base = replace(base, starts_after=run.delay - _START)
        if run.ready_after is not None and run.ready_after > _BRIEF:
            base = replace(base, ready_after=run.ready_after)
        if run.ended is not None and not life.is_initial:
            base = replace(base, runs_for=max(0.0, run.ended[0] - run.running_at), own_code=run.ended[1])
        return base

    def _life(self, pod: Object) -> PodLife | None:
        uid = uid_of(pod)
        if uid in self._lives:
            return self._lives[uid]
        if static := self._static.get((namespace_of(pod), name_of(pod))):
            return static
        if uid not in self._chosen:
            waiting = self._new.get(_key(pod), [])
            self._chosen[uid] = waiting.pop(0) if waiting else None
        return self._chosen[uid]


def _with_sync(base: Behaviour, sync: float, number: int) -> Behaviour:
    usual = _FIRST_SYNC if number else 0.0
    return replace(base, sync_after=sync - usual) if sync > usual + _LATE else base


def _key(pod: Object) -> tuple[str, ...]:
    is_identified = (controller_of(pod) or {}).get("kind") == "StatefulSet"
    return owner_of(pod), node_of(pod), name_of(pod) if is_identified else ""

"""Event recorder, as in client-go: an equal event increments the count of the first."""

from __future__ import annotations

from collections import OrderedDict, deque

from chaos.lab.apiserver.store.store import Store
from chaos.lab.objects.accessors import Object, is_deleting
from chaos.lab.sim.clock import SimClock

_VERSIONS = dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps/v1")
_VERSIONS |= {"PodDisruptionBudget": "policy/v1", "Job": "batch/v1"}
_MAX_CORRELATED = 4096  # client-go events_cache.go maxLruCacheEntries
_EventKey = tuple[dict[str, str], str, str, str]  # involved object, type, reason, message
_DELAY = (0.002, 0.03)  # events are sent by a separate goroutine; seen in the recordings


class Recorder:
    """Writes the events of a component in order; ``host`` is set for kubelets."""

    def __init__(self, sim: SimClock, store: Store, component: str, host: str = "") -> None:
        self._sim, self._store = sim, store
        self._source = {"component": component, "host": host} if host else {"component": component}
        self._names: OrderedDict[tuple[str, ...], tuple[str, str]] = OrderedDict()
        self._queue: deque[tuple[float, _EventKey]] = deque()  # with the time of the write
        self._last, self._stamp = 0.0, 0

    def emit(self, kind: str, obj: Object, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Queue an event about an object; a Node needs no uid, as in events of kubelets."""
        meta = obj["metadata"]
        version = _VERSIONS.get(kind, "v1")
        involved = {"kind": kind, "apiVersion": version, "name": meta["name"], "uid": meta.get("uid", "")}
        if meta.get("namespace"):
            involved["namespace"] = meta["namespace"]
        self._last = max(self._last, self._sim.now + self._sim.rng.uniform(*_DELAY))
        self._queue.append((self._last, (involved, type_, reason, message)))
        if len(self._queue) == 1:
            self._sim.at(self._last, self._send)

    def _send(self) -> None:
        """Write the first event and set the timer for the next."""
        self._write(*self._queue.popleft()[1])
        if self._queue:
            self._sim.at(self._queue[0][0], self._send)

    def _write(self, involved: dict[str, str], type_: str, reason: str, message: str) -> None:
        key = (
            involved["kind"],
            involved.get("namespace", ""),
            involved["name"],
            involved["uid"],
            reason,
            message,
            type_,
        )
        namespace = involved.get("namespace") or "default"
        if key in self._names:
            self._names.move_to_end(key)
            if self._increment_count(*self._names[key]):
                return
        home = self._store.get("namespaces", "", namespace)
        if home is None or is_deleting(home):
            return  # the API server rejects new objects in a terminating namespace
        name = self._name(involved["name"], namespace)
        now = self._sim.timestamp()
        self._names[key] = (namespace, name)
        if len(self._names) > _MAX_CORRELATED:
            self._names.popitem(last=False)
        body: Object = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": self._source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type_,
            "eventTime": None,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source.get("host", ""),
        }
        self._store.create("events", body)

    def _name(self, about: str, namespace: str) -> str:
        """Name of the object and nanoseconds, one more for each further event at the same simulated time."""
        self._stamp = max(self._stamp + 1, int(self._sim.now * 1e9))
        while self._store.get("events", namespace, name := f"{about}.{self._stamp:x}") is not None:
            self._stamp += 1
        return name

    def _increment_count(self, namespace: str, name: str) -> bool:
        def change(event: Object) -> None:
            event["count"] += 1
            event["lastTimestamp"] = self._sim.timestamp()

        return self._store.patch("events", namespace, name, change) is not None

"""Stands in for kubelet and API server of one real machine: a Node object made of what the machine says now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from threading import Event, Thread
from typing import Any

import msgspec

from chaos.core.labels import ZONE_LABEL
from chaos.core.ports import Clock, Response, Sink
from chaos.core.recording import RecordingEntry
from tests.kit.fakes import FakeKube
from tests.kit.vms import VirtualMachine

# What the kubelet compares with its thresholds, each in its unit of bytes or IDs, and the boot.
_INSPECT = """cat /proc/sys/kernel/random/boot_id
awk '/^MemFree:|^Inactive.file.:/ { kib += $2 } END { printf "%.0f\\n", kib * 1024 }' /proc/meminfo
df -P -k /var/lib/kubelet | awk 'NR == 2 { printf "%.0f\\n", $4 * 1024 }'
IFS=" /" read -r _ _ _ _ threads _ < /proc/loadavg; echo $(($(cat /proc/sys/kernel/pid_max) - threads))"""
_PERIOD = 2.0


class StandIn(FakeKube):
    """``hard``: the thresholds, as evictionHard in bytes and IDs. An observer too: what it posts, the run sees.

    ``others``: further Nodes of the cluster; ``zone``: that of the machine's own Node.

    A machine that does not answer leaves what was posted last, as a real one does until it is missed.
    """

    name = "stand-in"

    def __init__(
        self,
        machine: VirtualMachine,
        clock: Clock,
        hard: Mapping[str, int],
        *,
        others: Sequence[dict[str, Any]] = (),
        zone: str = "",
    ) -> None:
        super().__init__({})
        self._others, self._zone = others, zone
        self._machine, self._clock, self._hard = machine, clock, hard
        self._left = Event()
        self._node: dict[str, Any] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Post what it says now; whether that is news."""
        said = self._machine.run(_INSPECT, check=False, timeout=60.0).split()
        if len(said) != 4:
            return False
        signals = zip(("memory.available", "nodefs.available", "pid.available"), map(int, said[1:]), strict=True)
        short = {signal for signal, value in signals if value < self._hard.get(signal, 0)}
        before, self._node = self._node, node(self._machine.name, said[0], short, self._zone)
        return before != self._node

    def request(self, method: str, path: str, *rest: Any, **more: Any) -> Response:
        if (method, path) == ("GET", f"/api/v1/nodes/{self._machine.name}"):
            return Response(200, json.dumps(self._node).encode(), {})
        if (method, path) == ("GET", "/api/v1/nodes") and self._others:
            return Response(200, json.dumps({"items": [self._node, *self._others]}).encode(), {})
        return super().request(method, path, *rest, **more)

    def kubelet(self, address: str, port: int, path: str) -> Response:
        config = {"evictionHard": {signal: str(value) for signal, value in self._hard.items()}}
        return Response(200, json.dumps({"kubeletconfig": config}).encode(), {})

    @property
    def node(self) -> dict[str, Any]:
        return self._node

    def start(self, sink: Sink) -> None:
        self._thread = Thread(target=self._watch, args=(sink,), daemon=True)
        self._emit("LIST", sink)
        self._thread.start()

    def stop(self) -> None:
        self._left.set()
        self._thread.join(90)

    def has_synced(self) -> bool:
        return True

    def _watch(self, sink: Sink) -> None:
        while not self._left.wait(_PERIOD):
            if self.refresh():
                self._emit("MODIFIED", sink)

    def _emit(self, kind: str, sink: Sink) -> None:
        raw = msgspec.Raw(json.dumps(self._node).encode())
        sink(RecordingEntry(self._clock.now(), "nodes", kind, raw, self._machine.name))


def node(name: str, boot_id: str, short: set[str], zone: str = "") -> dict[str, Any]:
    """A node that is Ready; ``short``: of what it reports pressure."""
    pressures = {"Memory": "memory.available", "Disk": "nodefs.available", "PID": "pid.available"}
    conditions = [{"type": "Ready", "status": "True"}]
    conditions += [{"type": f"{kind}Pressure", "status": str(signal in short)} for kind, signal in pressures.items()]
    status = {
        "conditions": conditions,
        "nodeInfo": {"bootID": boot_id},
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
    }
    made = zoned_node(name, "10.0.2.15", zone)
    return {**made, "status": {**made["status"], **status}}


def zoned_node(name: str, address: str, zone: str) -> dict[str, Any]:
    """A Node with an address, in a zone or, with "", in none."""
    labels = {ZONE_LABEL: zone} if zone else {}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels}
    return {"metadata": metadata, "spec": {}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}

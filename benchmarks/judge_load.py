"""Entries of a large, busy cluster: Leases, heartbeats, pods that come and go, Events, and proofs of currency."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from chaos.core.recording import RecordingEntry

T0 = 1_800_000_000.0
LEASE_PERIOD, HEARTBEAT_PERIOD = 10, 300  # seconds
VICTIM, BEGIN = "worker-0000", 20  # the node that goes off, and when
DEPLOYMENT_PODS = 30
_WORKLOADS = ("deployments", "statefulsets", "daemonsets", "replicasets")
_PROVEN = ("nodes", "pods", "leases", "events", "poddisruptionbudgets", *_WORKLOADS)
_REPLAY_PERIOD = 10  # seconds between two proofs that nothing came and went
_WEB, _SHOP = "demo", "shop"
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for taint in ("not-ready", "unreachable")
]


def stamp(t: float, spec: str = "seconds") -> str:
    return datetime.fromtimestamp(T0 + t, UTC).isoformat(timespec=spec).replace("+00:00", "Z")


def entry(t: float, kind: str, type_: str, obj: Any, node: str = "") -> RecordingEntry:
    made = RecordingEntry(T0 + t, kind, type_, msgspec.Raw(msgspec.json.encode(obj)))
    if node:
        made.node = node
    return made


class Cluster:
    """``nodes`` Nodes and ``pods`` pods, of which a tenth is in the namespace of the workload."""

    def __init__(self, nodes: int, pods: int, rate: int) -> None:
        self.random = random.Random(7)
        self.nodes = [f"worker-{number:04}" for number in range(nodes)]
        self.rate = rate
        self.version = 1000
        self.born = 0
        self.pods: dict[str, dict[str, Any]] = {}
        self.starting: list[str] = []
        for number in range(pods):
            self._new_pod(number, -3600.0, self.nodes[number % nodes], ready=True)

    def listed(self) -> Iterator[RecordingEntry]:
        """What the first lists have."""
        yield entry(0, "meta", "recording", {"format": 1, "kubernetes": "v1.36.2", "workload": _WEB})
        for name in self.nodes:
            yield entry(0.1, "nodes", "LIST", self._node(name, 0))
            yield entry(0.1, "leases", "LIST", self._lease(name, 0))
        for pod in self.pods.values():
            yield entry(0.2, "pods", "LIST", pod)
        for app in sorted({self._app(pod) for pod in self.pods.values()}):
            namespace, name = app.split("/")
            metadata = self._metadata(name, namespace, f"uid-{app}") | {"generation": 1}
            status = {"observedGeneration": 1, "availableReplicas": 30, "readyReplicas": 30}
            yield entry(0.3, "deployments", "LIST", {"metadata": metadata, "spec": {"replicas": 30}, "status": status})
            if namespace == _WEB and name.endswith("0"):
                spec = {"minAvailable": 5, "selector": {"matchLabels": {"app": name}}}
                budget = {"metadata": self._metadata(name, namespace, f"pdb-{app}"), "spec": spec}
                yield entry(0.3, "poddisruptionbudgets", "LIST", budget | {"status": {"desiredHealthy": 5}})
        yield entry(0.4, "events", "LIST", self._event(0, "Started", "old", _SHOP, self.nodes[-1]))
        yield from self._proofs(0.5, complete=True)

    def second(self, t: int) -> Iterator[RecordingEntry]:
        """What is received in the second from ``t`` on: ``rate`` entries, about."""
        moments = iter(sorted(t + self.random.random() * 0.9 for _ in range(2 * self.rate)))
        made = 0
        if t == BEGIN:
            yield entry(t, "action", "power-cut", {"step": "off", "phase": "begin"}, VICTIM)
            done = {"step": "off", "phase": "returned", "delivery": "answered", "exit": 0}
            yield entry(t, "action", "power-cut", done, VICTIM)
        for name in self.nodes:
            if name == VICTIM and t >= BEGIN:
                continue
            phase = int(name[-4:])
            if t % LEASE_PERIOD == phase % LEASE_PERIOD:
                at = next(moments)
                yield entry(at, "leases", "MODIFIED", self._lease(name, at))
                made += 1
            if t % HEARTBEAT_PERIOD == phase % HEARTBEAT_PERIOD:
                at = next(moments)
                yield entry(at, "nodes", "MODIFIED", self._node(name, at))
                made += 1
        if t == BEGIN + 5:
            yield entry(t, "host", "machine", "off", VICTIM)
        if t == BEGIN + 45:
            yield entry(next(moments), "nodes", "MODIFIED", self._node(VICTIM, t, "Unknown"))
        while made < self.rate:
            at = next(moments)
            for one in self._churn(at):
                made += 1
                yield one
        yield from self._proofs(t + 0.95, complete=t % _REPLAY_PERIOD == 0)

    def _churn(self, t: float) -> Iterator[RecordingEntry]:
        """One change of a pod, with an Event for most."""
        if self.starting and self.random.random() < 0.75:
            pod = self.pods[self.starting[0]]
            name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
            stage = pod["stage"] = pod.get("stage", 0) + 1
            if stage == 1:
                pod["spec"]["nodeName"] = node = self.random.choice(self.nodes[1:])
            if stage == 3:
                self._set_ready(pod, t)
                self.starting.pop(0)
            yield entry(t, "pods", "MODIFIED", self._touched(pod))
            reason = ("Scheduled", "Pulled", "Started")[stage - 1]
            yield entry(t, "events", "ADDED", self._event(t, reason, name, pod["metadata"]["namespace"], node))
            return
        uid = self.random.choice(_oldest(self.pods))
        pod = self.pods[uid]
        pod["metadata"]["deletionTimestamp"] = stamp(t + 30)
        pod["metadata"]["deletionGracePeriodSeconds"] = 30
        yield entry(t, "pods", "MODIFIED", self._touched(pod))
        yield entry(t, "pods", "DELETED", self._touched(pod))
        del self.pods[uid]
        if uid in self.starting:
            self.starting.remove(uid)
        new = self._new_pod(int(pod["number"]), t, "", ready=False)
        self.starting.append(new["metadata"]["uid"])
        yield entry(t, "pods", "ADDED", self._touched(new))

    def _proofs(self, t: float, complete: bool) -> Iterator[RecordingEntry]:
        for source in _PROVEN:
            proof = {"until": T0 + t - 0.1, "version": str(self.version), "read": T0 + t - 0.1}
            yield entry(t, "current", source, proof | ({"complete": proof["until"]} if complete else {}))

    def _metadata(self, name: str, namespace: str, uid: str) -> dict[str, Any]:
        self.version += 1
        return {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self.version)}

    def _touched(self, pod: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        return {key: value for key, value in pod.items() if key not in ("stage", "number")}

    def _app(self, pod: dict[str, Any]) -> str:
        return f"{pod['metadata']['namespace']}/{pod['metadata']['labels']['app']}"

    def _new_pod(self, number: int, t: float, node: str, *, ready: bool) -> dict[str, Any]:
        self.born += 1
        deployment = number // DEPLOYMENT_PODS
        namespace, app = _WEB if deployment % 10 == 0 else _SHOP, f"app-{deployment}"
        metadata = self._metadata(f"{app}-7d9f-{self.born:x}", namespace, f"uid-{self.born}")
        metadata |= {"creationTimestamp": stamp(t), "labels": {"app": app, "pod-template-hash": "7d9f"}}
        owner = {"kind": "ReplicaSet", "name": f"{app}-7d9f", "uid": f"rs-{deployment}", "controller": True}
        spec = {"nodeName": node, "priority": 0, "terminationGracePeriodSeconds": 30, "tolerations": _TOLERATIONS}
        pod = {
            "number": number,
            "metadata": metadata | {"ownerReferences": [owner]},
            "spec": spec | {"containers": [{"name": "app"}]},
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
        }
        if ready:
            self._set_ready(pod, t)
        self.pods[metadata["uid"]] = pod
        return pod

    def _set_ready(self, pod: dict[str, Any], t: float) -> None:
        names = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        container = {"name": "app", "ready": True, "restartCount": 0, "containerID": f"c://{pod['metadata']['uid']}"}
        pod["status"] = {
            "phase": "Running",
            "startTime": stamp(t),
            "qosClass": "Burstable",
            "conditions": [{"type": name, "status": "True", "lastTransitionTime": stamp(t)} for name in names],
            "containerStatuses": [container | {"state": {"running": {"startedAt": stamp(t)}}}],
        }

    def _node(self, name: str, t: float, ready: str = "True") -> dict[str, Any]:
        reasons = {"MemoryPressure": "KubeletHasSufficientMemory", "DiskPressure": "KubeletHasNoDiskPressure"}
        reasons |= {"PIDPressure": "KubeletHasSufficientPID", "Ready": "KubeletReady"}
        conditions = [
            {"type": type_, "status": ready if type_ == "Ready" else "False", "reason": reason, "message": reason}
            | {"lastTransitionTime": stamp(-3600), "lastHeartbeatTime": stamp(t)}
            for type_, reason in reasons.items()
        ]
        info = {"bootID": f"boot-{name}", "machineID": f"m-{name}", "kubeletVersion": "v1.36.2", "osImage": "Debian 13"}
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        status = {"conditions": conditions, "nodeInfo": info, "capacity": amounts, "allocatable": amounts}
        status["addresses"] = [{"type": "InternalIP", "address": f"10.0.{int(name[-4:]) >> 8}.{int(name[-4:]) & 255}"}]
        return {"metadata": self._metadata(name, "", f"uid-{name}"), "spec": {}, "status": status}

    def _lease(self, name: str, t: float) -> dict[str, Any]:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp(t - 0.01, "microseconds")}
        return {"metadata": self._metadata(name, "kube-node-lease", f"lease-{name}"), "spec": spec}

    def _event(self, t: float, reason: str, pod: str, namespace: str, node: str) -> dict[str, Any]:
        about = {"kind": "Pod", "namespace": namespace, "name": pod, "uid": f"uid-{pod}"}
        metadata = self._metadata(f"{pod}.{self.version:x}", namespace, f"event-{self.version}")
        times = {"firstTimestamp": stamp(t), "lastTimestamp": stamp(t), "count": 1, "type": "Normal"}
        source = {"component": "kubelet", "host": node}
        message = f"{reason} container app of pod {pod}"
        return (
            {"metadata": metadata, "involvedObject": about, "reason": reason, "message": message}
            | times
            | {"source": source}
        )


def _oldest(pods: dict[str, Any]) -> list[str]:
    """Some of the oldest pods: those that a rollout replaces next."""
    found = []
    for uid in pods:
        found.append(uid)
        if len(found) == 20:
            break
    return found

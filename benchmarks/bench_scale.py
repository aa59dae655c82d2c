"""A lab with 1,000 nodes and 30,000 pods: its start as a process, a full LIST, and 333 lost nodes.

Run from the repository: ``python benchmarks/bench_scale.py [NODES]``; fewer nodes have fewer pods. Exit code 1 if a
goal is missed. Wall times depend on other load of the machine; CPU times are printed, too.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import ssl
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.server.content import GcTuner
from chaos.lab.spec import LabSpec, NodeSpec

Object = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
START_GOAL, MEMORY_GOAL, LOSS_GOAL = 20.0, 2048, 60.0  # wall seconds, MiB, wall seconds
PODS_PER_NODE, DAEMON_SETS, STATEFUL_SETS, LOST, MINUTES = 30, 3, 10, 1 / 3, 15
SPEED = 5  # simulated seconds a second


def lab_spec(nodes: int) -> LabSpec:
    workers = [NodeSpec(name=f"worker-{number:04}", zone="abc"[number % 3]) for number in range(nodes - 1)]
    return LabSpec(nodes=[NodeSpec(name="control-plane", role="control-plane", zone="a"), *workers])


def workload(name: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    pod = {"containers": [container], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def objects(nodes: int) -> list[tuple[str, Object]]:
    """DaemonSets on every node, StatefulSets of which one has volumes, Deployments of which some are spread by zone."""
    pods = nodes * PODS_PER_NODE
    everywhere = {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}
    found = [("daemonsets", workload(f"agent-{number}", pod=everywhere)) for number in range(DAEMON_SETS)]
    left, replicas = pods - DAEMON_SETS * nodes, max(1, nodes // 10)
    data = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for number in range(STATEFUL_SETS):
        more = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": data}]} if number == 0 else {}
        body = workload(f"db-{number}", replicas=replicas, podManagementPolicy="Parallel", serviceName="db", **more)
        found.append(("statefulsets", body))
        left -= replicas
    for number in range(nodes // 10):
        name, share = f"web-{number}", left // (nodes // 10 - number)
        left -= share
        spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        spread["labelSelector"] = {"matchLabels": {"app": name}}
        pod = {"topologySpreadConstraints": [spread]} if number % 5 == 0 else {}
        found.append(("deployments", workload(name, replicas=share, pod=pod)))
        if number % 10 == 0:
            service = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}
            found.append(("services", service))
    return found


class Client:
    """One connection to the API of a lab that runs as a process."""

    def __init__(self, ready: Object) -> None:
        context = ssl.create_default_context(cafile=ready["caFile"])
        host, port = ready["apiServer"].removeprefix("https://").split(":")
        self._connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=120)
        self._headers = {"Authorization": f"Bearer {ready['token']}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Object | None = None) -> bytes:
        data = json.dumps(body) if body is not None else None
        self._connection.request(method, path, data, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return text

    def create(self, plural: str, body: Object) -> None:
        group = "api/v1" if plural == "services" else "apis/apps/v1"
        self.call("POST", f"/{group}/namespaces/default/{plural}", body)

    def ready_pods(self) -> int:
        """The number of ready pods, from the status of the workloads."""
        number = 0
        for plural, field in (
            ("deployments", "readyReplicas"), ("statefulsets", "readyReplicas"), ("daemonsets", "numberReady")
        ):  # fmt: skip
            items = json.loads(self.call("GET", f"/apis/apps/v1/{plural}"))["items"]
            number += sum(item["status"].get(field, 0) for item in items)
        return number


def start(nodes: int) -> bool:
    """As a process, until everything runs; then a LIST of all pods."""
    pods, begin = nodes * PODS_PER_NODE, time.perf_counter()
    command = [sys.executable, "-m", "chaos.lab", "--speed", str(SPEED)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as lab:
        assert lab.stdin is not None
        assert lab.stdout is not None
        lab.stdin.write(lab_spec(nodes).to_json() + b"\n")
        lab.stdin.flush()
        client = Client(json.loads(lab.stdout.readline()))
        empty = time.perf_counter() - begin
        for plural, body in objects(nodes):
            client.create(plural, body)
        while client.ready_pods() < pods:
            time.sleep(0.2)
        wall, (cpu, memory) = time.perf_counter() - begin, usage(lab.pid)
        print(
            f"{nodes} nodes answer after {empty:.1f} s wall; {pods} pods run after {wall:.1f} s wall, {cpu:.1f} s CPU"
        )
        begin = time.perf_counter()
        text = client.call("GET", "/api/v1/pods")
        listed = time.perf_counter() - begin
        running = sum(pod["status"]["phase"] == "Running" for pod in json.loads(text)["items"])
        print(f"one LIST of {running} running pods: {listed:.2f} s, {len(text) >> 20} MiB; ", end="")
        memory = usage(lab.pid)[1]
        print(f"the lab's memory {memory} MiB at most (goals: {START_GOAL:.0f} s, {MEMORY_GOAL} MiB)")
        lab.stdin.write(b"stop\n")
        lab.stdin.flush()
        lab.wait(60)
    return wall < START_GOAL and memory < MEMORY_GOAL and running == pods


def usage(pid: int) -> tuple[float, int]:
    """CPU seconds and peak memory in MiB of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status") as file:
        peak = next(line.split()[1] for line in file if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak) >> 10


def populated(nodes: int, seconds: float) -> Cluster:
    """A cluster in process, ``seconds`` of simulated time after the workloads were created on Ready nodes."""
    cluster = Cluster(lab_spec(nodes))
    GcTuner(cluster.store)  # as in the process of the lab
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + 5)  # nodes are Ready
    for plural, body in objects(nodes):
        cluster.create_object(plural, body)
    cluster.sim.run_until(cluster.sim.now + seconds)
    return cluster


def lose(nodes: int) -> bool:
    """In process: most of the loss hits zone a (partial disruption), less zone b, little zone c."""
    cluster = populated(nodes, 30)
    number, share = int(nodes * LOST), {0: 0.6, 1: 0.3, 2: 0.1}
    for zone, part in share.items():
        for index in range(zone, nodes - 1, 3)[: round(number * part)]:
            cluster.machines[f"worker-{index:04}"].power_off()
    wall, cpu, before = time.perf_counter(), time.process_time(), cluster.store.version
    cluster.sim.run_until(cluster.sim.now + 60 * MINUTES)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    report(cluster)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{MINUTES} simulated minutes with {number} of {nodes} nodes lost: {wall:.1f} s wall, {cpu:.1f} s CPU")
    print(f"  (goal: {LOSS_GOAL:.0f} s); {cluster.store.version - before} changes, {memory} MiB at most")
    return wall < LOSS_GOAL


def report(cluster: Cluster) -> None:
    """Print the effects of the loss."""
    tainted: Counter[str] = Counter()
    for node in cluster.store.list("nodes"):
        if any(taint["effect"] == "NoExecute" for taint in node["spec"].get("taints") or []):
            tainted[node["metadata"]["labels"][ZONE]] += 1
    pods = cluster.store.list("pods")
    evicted = sum("deletionTimestamp" in pod["metadata"] for pod in pods)
    print(f"NoExecute by zone {dict(sorted(tainted.items()))}; {evicted} pods evicted, {len(pods) - evicted} others")


def describe(nodes: int) -> None:
    """Print the workload, and the load of the machine."""
    bodies = objects(nodes)
    kinds = Counter(plural for plural, _ in bodies)
    sizes = [body["spec"]["replicas"] for plural, body in bodies if plural == "deployments"]
    print(f"{nodes * PODS_PER_NODE} pods of", ", ".join(f"{number} {plural}" for plural, number in kinds.items()))
    print(f"  (deployments of {min(sizes)} to {max(sizes)} pods); load average {os.getloadavg()[0]:.1f}")


def main() -> int:
    """Both parts; exit code 1 if a goal is missed."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    describe(nodes)
    results = [start(nodes), lose(nodes)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

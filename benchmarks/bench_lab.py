"""CPU time and memory of a lab, in process: 10 simulated minutes of 4 nodes, then clusters of several sizes.

Run from the repository: ``python benchmarks/bench_lab.py [NODES ...]``, by default 100, 300, 1000 and 3000 nodes with
30 pods each. Of each size also the number of function calls, which does not depend on the machine. Exit code 1 if the 4
nodes take 2 s of CPU or more, or if calls per pod or per quiet node-minute differ by more than 15 % between sizes.
``--profile NODES`` prints flat profiles of the start and of a loss, as in profile_lab.txt.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import subprocess
import sys
import time
from pathlib import Path

from bench_scale import PODS_PER_NODE, lab_spec, objects, populated

from chaos.lab.cluster import Cluster
from chaos.lab.server.content import GcTuner
from chaos.lab.spec import LabSpec, NodeSpec

GOAL, SPREAD = 2.0, 1.15  # seconds; the most calls of any size, to the fewest
WORKERS, REPLICAS, AGENTS = 3, 36, 4
SIZES = ("100", "300", "1000", "3000")  # nodes
LINES = 40  # of a profile
STARTUP, MINUTES = 30, 5  # simulated seconds until all pods run, then minutes without an event


def workload(name: str, **spec: object) -> dict[str, object]:
    labels = {"app": name}
    every = [{"operator": "Exists", "effect": "NoSchedule"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c"}], "tolerations": every}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def small() -> bool:
    """One worker of three is powered off and on again."""
    nodes = [NodeSpec(name="control-plane", role="control-plane")]
    nodes += [NodeSpec(name=f"worker-{number}") for number in range(WORKERS)]
    cpu = time.process_time()
    cluster = Cluster(LabSpec(nodes=nodes))
    begin = cluster.sim.now
    cluster.start()
    cluster.create_object("deployments", workload("web", replicas=REPLICAS))
    cluster.create_object("daemonsets", workload("agent"))
    cluster.sim.run_until(begin + 60)
    running = sum(pod["status"]["phase"] == "Running" for pod in cluster.store.list("pods"))
    cluster.machines["worker-0"].power_off()
    cluster.sim.run_until(begin + 480)  # Unknown after 50 s, evicted after 300 s more
    cluster.machines["worker-0"].power_on()
    cluster.sim.run_until(begin + 600)
    cpu = time.process_time() - cpu
    print(f"10 simulated minutes, 4 nodes, {running} pods, a power-off and a power-on: {cpu:.2f} s of CPU ", end="")
    print(f"(goal: under {GOAL:.0f} s), {cluster.store.version} changes", flush=True)
    return cpu < GOAL and running == REPLICAS + AGENTS


def resident() -> int:
    """Resident memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def large(nodes: int) -> None:
    """Start of the cluster, and quiet minutes; in a separate process, for its memory."""
    pods, memory, cpu = nodes * PODS_PER_NODE, resident(), time.process_time()
    cluster = populated(nodes, STARTUP)
    running = sum(pod["status"]["phase"] == "Running" for pod in cluster.store.list("pods"))
    started, memory = time.process_time() - cpu, resident() - memory
    cpu = time.process_time()
    cluster.sim.run_until(cluster.sim.now + 60 * MINUTES)
    quiet = (time.process_time() - cpu) / (nodes * MINUTES) * 1000
    print(
        f"{nodes:5} nodes: {running} of {pods} pods run after {started:.1f} s of CPU, {started / pods * 1e6:.0f} us ",
        end="",
    )
    print(f"and {memory / pods:.0f} bytes per pod; {quiet:.2f} s of CPU per 1,000 quiet node-minutes", flush=True)


def calls(nodes: int) -> None:
    """Function calls of the same; in a separate process, as the profiler makes them slow."""
    clusters: list[Cluster] = []
    started, quiet = cProfile.Profile(), cProfile.Profile()
    started.runcall(lambda: clusters.append(populated(nodes, STARTUP)))
    sim = clusters[0].sim
    quiet.runcall(sim.run_until, sim.now + 60 * MINUTES)
    pod, minute = (
        sum(entry.callcount for entry in found.getstats()) / number
        for found, number in ((started, nodes * PODS_PER_NODE), (quiet, nodes * MINUTES))
    )
    print(f"{nodes:5} nodes: {pod:.0f} function calls per pod until all run, {minute:.0f} per quiet node-minute")


def is_linear(lines: list[str]) -> bool:
    """Whether the printed numbers of calls are about the same for all sizes."""
    columns = zip(
        *([float(word) for word in line.split(":")[1].split() if word.isdecimal()] for line in lines), strict=True
    )
    spreads = [max(column) / min(column) for column in columns]
    print(f"the most calls of any size to the fewest: {' and '.join(f'{spread:.2f}' for spread in spreads)}")
    return bool(max(spreads) <= SPREAD)


def profile(nodes: int) -> None:
    """Flat profiles of the start, and of 15 minutes after the loss of a third."""
    cluster = Cluster(lab_spec(nodes))
    GcTuner(cluster.store)

    def begin() -> None:
        cluster.start()
        cluster.sim.run_until(cluster.sim.now + 5)
        for plural, body in objects(nodes):
            cluster.create_object(plural, body)
        cluster.sim.run_until(cluster.sim.now + STARTUP)

    def lose() -> None:
        for machine in list(cluster.machines.values())[1::3]:
            machine.power_off()
        cluster.sim.run_until(cluster.sim.now + 900)

    for title, work in ((f"start of {nodes} nodes, {nodes * PODS_PER_NODE} pods", begin), ("a third lost", lose)):
        profiler, text = cProfile.Profile(), io.StringIO()
        profiler.runcall(work)
        pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(LINES)
        lines = text.getvalue().replace(f"{Path(__file__).parents[1]}/", "").splitlines()
        print("\n".join([title, *(line.rstrip() for line in lines if line.strip()), ""]))


def main() -> int:
    """Print two lines for each size; exit code 1 if a goal is missed."""
    if sys.argv[1:2] == ["--one"]:
        large(int(sys.argv[2]))
        return 0
    if sys.argv[1:2] == ["--calls"]:
        calls(int(sys.argv[2]))
        return 0
    if sys.argv[1:2] == ["--profile"]:
        profile(int(sys.argv[2]))
        return 0
    met, counted = small(), list[str]()
    for nodes in sys.argv[1:] or SIZES:
        subprocess.run([sys.executable, __file__, "--one", nodes], check=True)
        command = [sys.executable, __file__, "--calls", nodes]
        counted.append(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(counted[-1], end="", flush=True)
    return 0 if is_linear(counted) and met else 1


if __name__ == "__main__":
    sys.exit(main())

"""A cluster with three control planes, etcd as static pods, and hosts whose programs run in the process of the test."""

from __future__ import annotations

from typing import Any

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover
from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, Process
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell
from chaos.lab.spec import LabSpec, NodeSpec, StaticPod
from tests.kit.lab_host import PassingTime
from tests.kit.program_run import ReadLine, Write, run_program

FACTS = discover(chaos.faults.readings, HostFact)
CLIENT = {"runtime-client": "/usr/bin/crictl", "runtime-socket": "/run/containerd/containerd.sock"}
ETCD = StaticPod(name="etcd", labels={"component": "etcd"})


class EtcdLab:
    """Nodes cp-1, cp-2 and so on, and w1; cp-1 leads at first."""

    def __init__(self, count: int = 3, seed: int = 1) -> None:
        nodes = [NodeSpec(name=f"cp-{n}", role="control-plane", static_pods=[ETCD]) for n in range(1, count + 1)]
        self.cluster = Cluster(LabSpec(nodes=[*nodes, NodeSpec(name="w1")], seed=seed))
        self.cluster.start()
        self.cluster.warm_up()
        self.sim, self.etcd = self.cluster.sim, self.cluster.etcd

    def wait(self, seconds: float) -> None:
        self.sim.run_until(self.sim.now + seconds)

    def run(self, node: str, script: str, root: bool = True) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a script on a host."""

        async def play(out: Write, err: Write, read_line: ReadLine) -> int:
            host = HostSystem(self.cluster.machines[node], self.sim, PassingTime(self.sim), lambda _: None, PROGRAMS)
            return await Shell(Process(host, "root" if root else "chaos", out, err, read_line), ["sh"]).run(script)

        return run_program(play, "")

    def fact(self, node: str, name: str) -> Any:
        """Value of a host's fact. Raises ValueError."""
        code, out, _ = self.run(node, str(FACTS[name].command_for(CLIENT)))
        return FACTS[name].parse(out, code)

    def mirror(self, node: str) -> Any:
        """The member's pod in the API, None without one."""
        return self.cluster.store.get("pods", "kube-system", f"etcd-{node}")

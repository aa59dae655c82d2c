"""A host of a lab: the programs that it runs, and etcd on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover
from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, NftTable, Process, TransientService
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell
from chaos.lab.hostshell.traffic import Traffic
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import LabSpec, NodeSpec, StaticPod

Write = Callable[[str], None]
ReadLine = Callable[[], Awaitable[str]]
WALL = 10  # seconds


def run_program(play: Callable[[Write, Write, ReadLine], Awaitable[int]], stdin: str = "") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``play``, which gets both outputs and the lines of ``stdin``."""
    out: list[str] = []
    err: list[str] = []
    lines = iter(stdin.splitlines(keepends=True))

    async def read_line() -> str:
        return next(lines, "")

    async def run() -> int:
        return await asyncio.wait_for(play(out.append, err.append, read_line), WALL)

    return asyncio.run(run()), "".join(out), "".join(err)


class PassingTime(Lockstep):
    """Time passes for whoever waits: no one else uses the host."""

    async def wait_until(self, until: float, *, background: bool = False) -> None:
        self.sim.run_until(until)


class Host:
    """One host whose programs run without a network. ``worker``: fields of its NodeSpec."""

    def __init__(self, **worker: Any) -> None:
        nodes = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1", **worker)]
        self.cluster = Cluster(LabSpec(nodes=nodes))
        self.cluster.start()
        self.cluster.sim.run_until(self.cluster.sim.now + 5.0)
        self._tables: dict[str, NftTable] = {}
        self._services: dict[str, TransientService] = {}
        self._run_files: dict[str, str] = {}
        self._ended_fillers: list[float] = []
        self._traffic = Traffic()
        self._mount_options: dict[str, str] = {}
        self._disk_properties: dict[str, str] = {}

    @property
    def machine(self) -> Machine:
        return self.cluster.machines["w1"]

    def run(self, script: str, stdin: str = "", root: bool = True) -> tuple[int, str, str]:
        """Run a script, as root or not. Returns exit code, stdout and stderr."""

        async def play(out: Write, err: Write, read_line: ReadLine) -> int:
            sim = self.cluster.sim
            host = self._system(sim)
            process = Process(host, "root" if root else "chaos", out, err, read_line)
            code = await Shell(process, ["sh"]).run(script)
            self._tables, self._disk_properties = host.tables, host.disk_properties
            return code

        return run_program(play, stdin)

    def _system(self, sim: SimClock) -> HostSystem:
        state: dict[str, Any] = {"services": self._services, "tables": self._tables}
        state |= {"traffic": self._traffic, "run_files": self._run_files, "mount_options": self._mount_options}
        state |= {"ended_fillers": self._ended_fillers, "disk_properties": self._disk_properties}
        return HostSystem(self.machine, sim, PassingTime(sim), lambda _: None, PROGRAMS, **state)

    def lose_power(self) -> None:
        """Drop the host's state in memory; the machine is not changed."""

        async def lose() -> None:
            self._system(self.cluster.sim).lose_power()

        asyncio.run(lose())

    def frozen(self) -> bool:
        return self.machine.kubelet.is_frozen

    def state(self) -> tuple[str, bool, bool]:
        return self.machine.state, self.machine.is_reachable, self.machine.kubelet.is_running


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

    def run(self, node: str, script: str, root: bool = True, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a script on a host."""

        async def play(out: Write, err: Write, read_line: ReadLine) -> int:
            host = HostSystem(self.cluster.machines[node], self.sim, PassingTime(self.sim), lambda _: None, PROGRAMS)
            return await Shell(Process(host, "root" if root else "chaos", out, err, read_line), ["sh"]).run(script)

        return run_program(play, stdin)

    def fact(self, node: str, name: str) -> Any:
        """Value of a host's fact. Raises ValueError."""
        code, out, _ = self.run(node, str(FACTS[name].command_for(CLIENT)))
        return FACTS[name].parse(out, code)

    def mirror(self, node: str) -> Any:
        """The member's pod in the API, None without one."""
        return self.cluster.store.get("pods", "kube-system", f"etcd-{node}")

"""A simulated host whose programs run in the process of the test."""

from __future__ import annotations

import asyncio
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, NftTable, Process, TransientService
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell
from chaos.lab.node.machine import Machine
from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import LabSpec, NodeSpec


class Host:
    """One host whose programs run without a network. ``worker``: fields of its NodeSpec."""

    def __init__(self, **worker: Any) -> None:
        nodes = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1", **worker)]
        self.cluster = Cluster(LabSpec(nodes=nodes))
        self.cluster.start()
        self.cluster.sim.run_until(self.cluster.sim.now + 5.0)
        self._tables: dict[str, NftTable] = {}
        self._services: dict[str, TransientService] = {}

    @property
    def machine(self) -> Machine:
        return self.cluster.machines["w1"]

    def run(self, script: str, stdin: str = "", root: bool = True) -> tuple[int, str, str]:
        """Run a script, as root or not. Returns exit code, stdout and stderr."""
        out: list[str] = []
        err: list[str] = []
        lines = iter(stdin.splitlines(keepends=True))

        async def read_line() -> str:
            return next(lines, "")

        async def play() -> int:
            sim = self.cluster.sim
            host = self._system(sim)
            process = Process(host, "root" if root else "chaos", out.append, err.append, read_line)
            code = await asyncio.wait_for(Shell(process, ["sh"]).run(script), 10)
            self._tables = host.tables
            return code

        return asyncio.run(play()), "".join(out), "".join(err)

    def _system(self, sim: SimClock) -> HostSystem:
        return HostSystem(
            self.machine, sim, Lockstep(sim), lambda _: None, PROGRAMS, services=self._services, tables=self._tables
        )

    def lose_power(self) -> None:
        """Drop the host's state in memory; the machine is not changed."""

        async def lose() -> None:
            self._system(self.cluster.sim).lose_power()

        asyncio.run(lose())

    def frozen(self) -> bool:
        return self.machine.kubelet.is_frozen

    def state(self) -> tuple[str, bool, bool]:
        return self.machine.state, self.machine.is_reachable, self.machine.kubelet.is_running

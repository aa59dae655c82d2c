"""A simulated host whose programs run in the process of the test."""

from __future__ import annotations

import asyncio
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.hostshell.process import HostSystem, NftTable, Process, TransientService
from chaos.lab.hostshell.programs import PROGRAMS
from chaos.lab.hostshell.shell import Shell
from chaos.lab.hostshell.traffic import Traffic
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.program_run import ReadLine, Write, run_program


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

"""A Windows node of a simulated cluster without servers; its programs run in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chaos.lab.cluster import Cluster
from chaos.lab.sim.clock import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.cmd import run_line
from chaos.lab.winshell.process import WinHost, WinProcess, default_environment, launch
from chaos.lab.winshell.programs import PROGRAMS
from tests.kit.program_run import ReadLine, Write, run_program


class WindowsHost:
    """A cluster of ``cp`` and the Windows node ``win1``, five seconds old. ``settings`` are of its NodeSpec."""

    def __init__(self, seed: int = 7, **settings: Any) -> None:
        nodes = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="win1", os="windows", **settings)]
        self.cluster = Cluster(LabSpec(nodes=nodes, seed=seed))
        self.cluster.start()
        self.wait(5.0)
        self.machine.tasks.run = self._run_task

    @property
    def sim(self) -> SimClock:
        return self.cluster.sim

    @property
    def machine(self) -> WindowsMachine:
        machine = self.cluster.machines["win1"]
        assert isinstance(machine, WindowsMachine)
        return machine

    def wait(self, seconds: float) -> None:
        self.sim.run_until(self.sim.now + seconds)

    def run(self, line: str, stdin: str = "", *, cmd: bool = True) -> tuple[int, str, str]:
        """Run a line in cmd.exe, or a program itself. Returns exit code, stdout and stderr."""

        async def play(out: Write, err: Write, read_line: ReadLine) -> int:
            host = WinHost(self.machine, self.sim, Lockstep(self.sim), PROGRAMS)
            user = f"{self.machine.computer}\\Administrator"
            process = WinProcess(*(host, user, out, err, read_line), default_environment(self.machine, "Administrator"))
            return await (run_line(process, line) if cmd else launch(process, line))

        return run_program(play, stdin)

    def event_ids(self) -> list[int]:
        """IDs of the System log, without those of the services' states."""
        return [record.event_id for record in self.machine.event_log.records if record.event_id != 7036]

    def _run_task(self, line: str, done: Callable[[int], None]) -> None:
        """At once, in another loop: a program may have started the task."""
        with ThreadPoolExecutor(1) as pool:
            done(pool.submit(self.run, line, cmd=False).result()[0])

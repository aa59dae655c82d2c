"""A Windows node of a simulated cluster without servers; its programs run in simulated time."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

from chaos.core.windows import powershell
from chaos.lab.cluster import Cluster
from chaos.lab.sim import SimClock
from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.lab.versions import DEFAULT
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.windows.services import StartType
from chaos.lab.winshell.process import WinHost, WinProcess, launch, run_line
from chaos.lab.winshell.programs import PROGRAMS
from chaos.lab.winshell.servers import TaskRunner

ShellLine = Callable[[WinProcess, str], Coroutine[Any, Any, int]]
_ROUNDS = 20  # of the event loop, in which programs compute between two moments of simulated time
_LIMIT = 3600.0  # simulated seconds that a program may take


class WindowsHost:
    """A cluster of ``cp`` and the Windows node ``win1``, five seconds old. ``settings`` are of its NodeSpec."""

    def __init__(self, seed: int = 7, kubernetes: str = DEFAULT, **settings: Any) -> None:
        nodes = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="win1", os="windows", **settings)]
        self.cluster = Cluster(LabSpec(nodes=nodes, seed=seed, kubernetes=kubernetes))
        self.cluster.start()
        self.sim.run_until(self.sim.now + 5.0)
        self._loop = asyncio.new_event_loop()
        weakref.finalize(self, _close, self._loop)
        self._lockstep: Lockstep | None = None  # until the first program runs

    @property
    def sim(self) -> SimClock:
        return self.cluster.sim

    @property
    def machine(self) -> WindowsMachine:
        machine = self.cluster.machines["win1"]
        assert isinstance(machine, WindowsMachine)
        return machine

    def wait(self, seconds: float) -> None:
        """Let time pass, with what programs do meanwhile."""
        end = self.sim.now + seconds
        if self._lockstep is None:
            self.sim.run_until(end)
            return
        while (due := self.sim.next_due()) is not None and due <= end:
            self._step(due)
        self._step(end)

    def run(self, line: str, stdin: str = "", *, cmd: bool = True) -> tuple[int, str, str]:
        """Run a line of cmd.exe, or a program itself, to its end. Returns exit code, stdout and stderr."""
        started = self.start(line, stdin, cmd=cmd)
        end = self.sim.now + _LIMIT
        self._settle()
        while not started.task.done() and self.sim.now < end:
            due = self.sim.next_due()
            assert due is not None, f"{line} waits for nothing"
            self._step(due)
        self._settle()
        return started.task.result(), "".join(started.out), "".join(started.err)

    def script(self, script: str, stdin: str = "", **parameters: Any) -> tuple[int, str, str]:
        """Run a script as nodefall sends it."""
        return self.run(script_line(script, **parameters), stdin, cmd=False)

    def stop(self, service: str) -> None:
        """Stop a service, and wait until it has stopped."""
        assert self.run(f"sc.exe stop {service}")[0] == 0
        self.wait(2.0)

    def kill(self, service: str) -> None:
        """Let the process of a service die."""
        found = self.machine.services.get(service)
        if service == "kubelet":
            self.machine.kubelet.kill()
        else:
            found.on_stop()
            self.machine.services.kill(found)

    def start(self, line: str, stdin: str = "", *, cmd: bool = True) -> Started:
        """Start a line; it goes on while time passes."""
        return Started(self, line, stdin, run_line if cmd else launch)

    def create_task(self, play: Callable[[WinHost], Any]) -> asyncio.Task[int]:
        """A task in the loop of the host."""
        if self._lockstep is None:
            self._lockstep = self._play(self._make_lockstep())
        host = WinHost(self.machine, self.sim, self._lockstep, PROGRAMS)
        return self._loop.create_task(play(host))

    def event_ids(self) -> list[int]:
        """IDs of the System log, the oldest first."""
        return [record.event_id for record in self.machine.event_log.records]

    def configure(self, service: str, start_type: StartType) -> None:
        """Change how a service is started."""
        self.machine.services.get(service).start_type = start_type

    async def _make_lockstep(self) -> Lockstep:
        lockstep = Lockstep(self.sim)
        await TaskRunner(self.machine, self.sim, lockstep, PROGRAMS).start()
        return lockstep

    def _play(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def _step(self, until: float) -> None:
        async def move() -> None:  # in the loop: a timer may start a program
            self.sim.run_until(until)

        self._play(move())
        self._settle()

    def _settle(self) -> None:
        if asyncio.all_tasks(self._loop):
            self._play(_rounds())


def script_line(script: str, **parameters: Any) -> str:
    """The command line that runs a script."""
    return " ".join(powershell(script, **parameters))


class Started:
    """A program that runs: its output so far."""

    def __init__(self, host: WindowsHost, line: str, stdin: str, run: ShellLine) -> None:
        self.out: list[str] = []
        self.err: list[str] = []
        lines = iter(stdin.splitlines(keepends=True))

        async def read_line() -> str:
            return next(lines, "")

        async def play(found: WinHost) -> int:
            computer = found.machine.computer
            process = WinProcess(
                *(found, f"{computer}\\Administrator", self.out.append, self.err.append, read_line),
            )
            with found.waits.request():
                return await run(process, line)

        self.task = host.create_task(play)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End the programs that still run."""
    for task in asyncio.all_tasks(loop):
        task.cancel()
    if asyncio._get_running_loop() is None:
        loop.run_until_complete(_rounds())
        loop.close()


async def _rounds() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)

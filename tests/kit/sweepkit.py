"""One run that dies at one position, and what is wrong afterwards."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import pty
import re
import time
import tty
from collections.abc import Iterator, MutableSequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.kit.action_rows import LABS, WITH_ETCD
from tests.kit.contracts import MANIFESTS, WINDOWS_VICTIMS, experiment, windows_experiment
from tests.kit.deaths import DEATHS, Death
from tests.kit.intruder import OTHER_NAMES
from tests.kit.strikes import Striker, Terminal
from tests.kit.sweeplab import Snapshot, SweepLab, sweep_lab
from tests.kit.tripwire import HIT, NOTICED, Job, work

WALL = 300  # seconds that any one command may take
FOREIGN = "foreign"  # the step of another run
_FORKS = multiprocessing.get_context("forkserver")


@dataclass
class Ended:
    """How a command ended.

    ``died`` says whether it came to its position. ``places``: those through which it came, of a command with a position
    those after it; ``replicated``: those at which its journal was in the cluster. ``noticed``: the loss of the lock.
    """

    code: int
    said: str
    places: list[str] = field(default_factory=list)
    replicated: list[str] = field(default_factory=list)
    died: bool = False
    noticed: bool = False


@dataclass(frozen=True)
class Case:
    """Hit where and by what; ``wrong`` is empty if nothing is left behind. ``cpu``: seconds, the lab's included."""

    name: str
    hit: bool
    places: list[str]
    replicated: list[str]
    wrong: list[str]
    cpu: float


class Sweep:
    """Case after case on one lab; on a new one after something was left behind.

    ``subject``: an action, or its Windows form and the transport, as ``reboot@winrm``; those have a separate lab.
    ``reboot@pod`` is the action on Linux over transport pod.
    """

    def __init__(self, directory: Path, speed: float) -> None:
        """``speed``: simulated seconds a wall second; what is opened over the network takes wall time."""
        self._directory, self._speed = directory, speed
        self._stack = ExitStack()
        self._number = 0
        self._lab: SweepLab | None = None
        self._kind = ""  # of the lab
        self._replay: dict[str, str] = {}
        self._clock_shifts: MutableSequence[float] = [0.0, 0.0]
        paths = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), str(Path(__file__).parents[2])]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))  # the server of forks needs it
        _FORKS.set_forkserver_preload(["tests.kit.warm"])

    def case(self, subject: str, position: str = "", death: str = "") -> Case:
        """The run, two undos, and what is wrong then. Without a position: which there are.

        ``returned+strike``: the run dies of it at the first, and an undo of it at the second.
        """
        place, _, later = position.partition("+")
        action, _, transport = subject.partition("@")
        kind = "etcd" if action in WITH_ETCD else action if action in LABS else ""
        lab, cwd = self._ready("windows" if transport in WINDOWS_VICTIMS else kind)
        if death == "journal-replayed" and not self._replay:
            self._replay = self._journal_of_another_run(lab)
        cpu, before = _cpu_seconds(), lab.snapshot()
        self._clock_shifts = _FORKS.RawArray("d", 2)
        if transport in WINDOWS_VICTIMS:
            file = windows_experiment(cwd, action, transport, recovery="20s")
        else:
            file = experiment(cwd, action, "20s", lab.leader() if action in WITH_ETCD else "")
        inventory = lab.pod_inventory if transport == "pod" else lab.inventory
        run = self._command(cwd, ["run", str(file), "-i", str(inventory), "--plain"], place, death)
        lab.mend()
        wrong = ["a traceback"] if "Traceback" in run.said else []
        hit = run.died
        if hit and death:
            wrong += _broken_contract(DEATHS[death], run)
        if later:
            hit = hit and self._command(cwd, ["undo", "last"], later, death).died
            lab.mend()
        wrong += self._undo(cwd)
        lab.intruder.remove_lock()
        wrong += _differences(before, lab.settle(before))
        if wrong:
            wrong.append(run.said)
            self.close()
        name = f"{subject}:{position}:{death}"
        return Case(name, hit, run.places, run.replicated, wrong, _cpu_seconds() - cpu)

    def close(self) -> None:
        self._stack.close()
        self._lab = None

    def _ready(self, kind: str) -> tuple[SweepLab, Path]:
        cwd = self._new_directory()
        if self._lab is not None and self._kind != kind:
            self.close()
        if self._lab is None:
            self._kind = kind
            lab = sweep_lab(cwd, MANIFESTS / "there.yaml", self._speed, kind)
            self._lab = self._stack.enter_context(lab)
            self._lab.settle(None)
        return self._lab, cwd

    def _new_directory(self) -> Path:
        self._number += 1
        cwd = self._directory / str(self._number)
        cwd.mkdir()
        return cwd

    def _journal_of_another_run(self, lab: SweepLab) -> dict[str, str]:
        """The data of a ConfigMap whose undo would scale a Deployment to what it no longer is."""
        before, cwd = lab.snapshot(), self._new_directory()
        lab.intruder.scale(4)
        file = experiment(cwd, "scale")
        file.write_text(file.read_text().replace('"name": "do"', f'"name": "{FOREIGN}"'))
        assert self._command(cwd, ["run", str(file), "-i", str(lab.inventory), "--plain"], "returned", "SIGKILL").died
        replica = lab.intruder.replica()
        assert replica
        assert not self._command(cwd, ["undo", "last"]).code
        lab.intruder.scale(3)
        assert not _differences(before, lab.settle(before))
        return dict(replica["data"])

    def _undo(self, cwd: Path) -> list[str]:
        wrong = []
        for journal in cwd.glob("reports/*/*/journal.jsonl"):
            undo = self._command(cwd, ["undo", "last"])
            if undo.code:
                wrong.append(f"undo ended with {undo.code}: {undo.said}")
            if _ALIEN.search(undo.said):
                wrong.append(f"undo took up what is not of its run: {undo.said}")
            before = journal.read_bytes()
            again = self._command(cwd, ["undo", "last"])
            if again.code or "undo:" in again.said or journal.read_bytes() != before:
                wrong.append(f"the second undo ended with {again.code}: {again.said}")
        return wrong

    def _command(self, cwd: Path, arguments: list[str], position: str = "", death: str = "") -> Ended:
        """Run it to its end. Raises AssertionError if there is none."""
        assert self._lab
        with ExitStack() as stack:
            ours, theirs = _FORKS.Pipe()
            stack.callback(ours.close)
            terminal = stack.enter_context(_terminal()) if death == "lost-terminal" else None
            name = terminal.name if terminal else ""
            job = Job(arguments, cwd, theirs, self._clock_shifts, position, death, name)
            process = _FORKS.Process(target=work, args=(job,))
            process.start()
            stack.callback(process.kill)
            theirs.close()
            striker = Striker(self._lab, death, process.pid or 0, self._clock_shifts, terminal, self._replay)
            ended = self._listen(ours, striker, is_listed=not position)
            process.join(WALL)
            assert process.exitcode is not None, f"{arguments} goes on"
        said = cwd / "said"
        ended.code, ended.said = process.exitcode, said.read_text() if said.exists() else ""
        said.unlink(missing_ok=True)
        return ended

    def _listen(self, link: Connection, striker: Striker, *, is_listed: bool) -> Ended:
        """Do what the process cannot do, until it ends."""
        ended = Ended(0, "")
        with suppress(EOFError, ConnectionError):
            while link.poll(WALL):
                message = str(link.recv())
                if message == HIT:
                    ended.died = striker.strike()
                    if DEATHS[striker.death].by_parent:
                        link.send("done")
                    if DEATHS[striker.death].steals and not DEATHS[striker.death].is_noticed:
                        striker.leave()
                elif message == NOTICED:
                    ended.noticed = True
                    striker.leave()
                else:
                    ended.places.append(message)
                    if is_listed:
                        ended.replicated += [message] if striker.lab.has_replica() else []
                        link.send("go on")
        return ended


# In the output of an undo: of other nodes, objects and runs than the experiment's.
_ALIEN = re.compile(rf"(?<![\w-])(?:{'|'.join({*OTHER_NAMES.values(), FOREIGN} - {'worker-3'})})(?![\w-])")
_OPERATIONS = {"applied", "planted", "begin", "returned"}


def _broken_contract(death: Death, run: Ended) -> list[str]:
    """What a run that goes on after its death must not do."""
    wrong = []
    if death.codes and run.code not in death.codes:
        wrong.append(f"the run ended with {run.code}")
    if death.is_noticed and not run.noticed:
        wrong.append("the run has not noticed that its lock was stolen")
    if death.steals and (begun := [place for place in run.places if re.sub(r"-\d+$", "", place) in _OPERATIONS]):
        wrong.append(f"the run went on without its lock: {begun}")
    return wrong


@contextmanager
def _terminal() -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    terminal = Terminal(os.ttyname(theirs), ours)
    os.close(theirs)
    try:
        yield terminal
    finally:
        terminal.close()


def _cpu_seconds() -> float:
    """Of this process, the lab's threads included, and of the commands that have ended."""
    server = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]  # their parent
    if server is None:
        return time.process_time()
    fields = Path(f"/proc/{server}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return time.process_time() + sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


def _differences(before: Snapshot, after: Snapshot) -> list[str]:
    keys = [key for key in before | after if before.get(key) != after.get(key)]
    return [f"{key} was {before.get(key)}, is {after.get(key)}" for key in keys]

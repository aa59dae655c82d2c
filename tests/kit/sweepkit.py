"""One run that dies at one position, and what is wrong afterwards."""

from __future__ import annotations

import multiprocessing
import os
import pty
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.contracts import MANIFESTS, experiment
from tests.kit.sweeplab import Snapshot, SweepLab, sweep_lab
from tests.kit.tripwire import Job, work

WALL = 300  # seconds that any one command may take
_FORKS = multiprocessing.get_context("forkserver")


@dataclass
class Ended:
    """How a command ended; ``died`` says whether it came to its position, ``places`` through which it came."""

    code: int
    said: str
    places: list[str] = field(default_factory=list)
    died: bool = False


@dataclass(frozen=True)
class Case:
    """Hit where and by what; ``wrong`` is empty if nothing is left behind."""

    name: str
    hit: bool
    places: list[str]
    wrong: list[str]


class Sweep:
    """Case after case on one lab; on a new one after something was left behind."""

    def __init__(self, directory: Path, speed: float) -> None:
        """``speed``: simulated seconds a wall second; what is opened over the network takes wall time."""
        self._directory, self._speed = directory, speed
        self._stack = ExitStack()
        self._number = 0
        self._lab: SweepLab | None = None
        paths = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), str(Path(__file__).parents[2])]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))  # the server of forks needs it
        _FORKS.set_forkserver_preload(["tests.kit.warm"])

    def case(self, action: str, position: str = "", death: str = "") -> Case:
        """The run, two undos, and what is wrong then. Without a position: which there are.

        ``returned+strike``: the run dies of it at the first, and an undo of it at the second.
        """
        place, _, later = position.partition("+")
        lab, cwd = self._ready()
        before = lab.snapshot()
        file = experiment(cwd, action, "20s")
        run = self._command(cwd, ["run", str(file), "-i", str(lab.inventory), "--plain"], place, death)
        lab.mend()
        wrong = ["a traceback"] if "Traceback" in run.said else []
        hit = run.died
        if later:
            hit = hit and self._command(cwd, ["undo", "last"], later, death).died
            lab.mend()
        wrong += self._undo(cwd)
        wrong += _differences(before, lab.settle(before))
        if wrong:
            wrong.append(run.said)
            self.close()
        return Case(f"{action}:{position}:{death}", hit, run.places, wrong)

    def close(self) -> None:
        self._stack.close()
        self._lab = None

    def _ready(self) -> tuple[SweepLab, Path]:
        self._number += 1
        cwd = self._directory / str(self._number)
        cwd.mkdir()
        if self._lab is None:
            self._lab = self._stack.enter_context(sweep_lab(cwd, MANIFESTS / "there.yaml", self._speed))
            self._lab.settle(None)
        return self._lab, cwd

    def _undo(self, cwd: Path) -> list[str]:
        wrong = []
        for journal in cwd.glob("reports/*/*/journal.jsonl"):
            undo = self._command(cwd, ["undo", "last"])
            if undo.code:
                wrong.append(f"undo ended with {undo.code}: {undo.said}")
            before = journal.read_bytes()
            again = self._command(cwd, ["undo", "last"])
            if again.code or "undo:" in again.said or journal.read_bytes() != before:
                wrong.append(f"the second undo ended with {again.code}: {again.said}")
        return wrong

    def _command(self, cwd: Path, arguments: list[str], position: str = "", death: str = "") -> Ended:
        """Run it to its end. Raises AssertionError if there is none."""
        with ExitStack() as stack:
            ours, theirs = _FORKS.Pipe()
            stack.callback(ours.close)
            terminal = stack.enter_context(_terminal()) if death == "lost-terminal" else None
            job = Job(arguments, cwd, theirs, position, death, terminal.name if terminal else "")
            process = _FORKS.Process(target=work, args=(job,))
            process.start()
            stack.callback(process.kill)
            theirs.close()
            ended = Ended(0, "")
            with suppress(EOFError):
                while ours.poll(WALL):
                    place = str(ours.recv())
                    if not position:
                        ended.places.append(place)
                        continue
                    ended.died = True
                    if death == "lost-network" and self._lab:
                        self._lab.cut()
                    if terminal:
                        terminal.close()
                    if death.startswith("lost-"):
                        ours.send("it is gone")
            process.join(WALL)
            assert process.exitcode is not None, f"{arguments} goes on"
        said = cwd / "said"
        ended.code, ended.said = process.exitcode, said.read_text() if said.exists() else ""
        said.unlink(missing_ok=True)
        return ended


@dataclass
class _Terminal:
    """One's other end."""

    name: str
    number: int | None

    def close(self) -> None:
        if self.number is not None:
            os.close(self.number)
        self.number = None


@contextmanager
def _terminal() -> Iterator[_Terminal]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    terminal = _Terminal(os.ttyname(theirs), ours)
    os.close(theirs)
    try:
        yield terminal
    finally:
        terminal.close()


def _differences(before: Snapshot, after: Snapshot) -> list[str]:
    keys = [key for key in before | after if before.get(key) != after.get(key)]
    return [f"{key} was {before.get(key)}, is {after.get(key)}" for key in keys]

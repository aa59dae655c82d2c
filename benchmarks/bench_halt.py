"""Time from ``nodefall gameday halt`` to the begin of the undo, or to the end of the day, in every phase.

The day, its lab and the halts are processes; the lab runs in real time, and the halt comes from another machine if
namespaces are available. Counted in wall time from the start of the command, and from when its halt is stored. Exit
code 1 if the second is over the goal. ``NODEFALL_ROUNDS``: halts in each phase.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.app.day.store import DayStore
from chaos.cluster.client import connect
from tests.kit.elsewhere import prefix
from tests.kit.gamedays import left_behind, start_day, write_day
from tests.kit.processes import WALL, environment, lab

ROUNDS = int(os.environ.get("NODEFALL_ROUNDS", "1"))
GOAL = 2.0  # seconds
# Where the halt comes, and what must follow: the undo if a fault was injected, else the end of the day.
UNDO, END = "phase: roll back", "game day halted by bench"
PHASES = [
    ("phase: plan", END),
    ("phase: arm", END),
    ("phase: steady state", END),
    ("phase: inject", UNDO),
    ("phase: observe", UNDO),
    ("phase: recovery", END),
    ("waiting for the pause", END),
    ("waiting for the gates of two", END),
]
GATE = [{"kind": "approval", "by": ["ada"], "onFailure": "wait", "wait": "1h"}]


class Lines:
    """The lines of a process and when they came."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[tuple[float, str]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    def wait(self, text: str, since: float = 0.0) -> float:
        """When the first line with ``text`` came, not before ``since``."""
        deadline = time.monotonic() + WALL
        while time.monotonic() < deadline:
            found = next((at for at, line in list(self.lines) if at >= since and text in line), None)
            if found is not None:
                return found
            if self.process.poll() is not None and not self._thread.is_alive():
                break
            time.sleep(0.005)
        raise RuntimeError(f"no {text!r} in:\n{''.join(line for _, line in self.lines)}")


def when_stored(inventory: Path) -> float:
    """The last moment before the halt was seen in the state of the day."""
    kube = connect(json.loads(inventory.read_text())["cluster"]["kubeconfig"])
    deadline = time.monotonic() + WALL
    try:
        store = DayStore(kube, "kube-system", "days", time.time)
        while (before := time.monotonic()) < deadline:
            if (state := store.read()) and state.halt:
                return before
            time.sleep(0.01)
        raise RuntimeError("the halt was not stored")
    finally:
        kube.close()


def halt_at(folder: Path, text: str, effect: str, elsewhere: Sequence[str]) -> tuple[float, float]:
    """Seconds from the command, and from the stored halt, to the effect."""
    entries = [{"experiment": "one.yaml"}, {"experiment": "two.yaml", "gates": GATE}]
    write_day(folder, ["one", "two"], lasts="10s", entries=entries)
    with lab(folder, speed=1) as inventory:
        day = Lines(start_day(inventory, folder))
        day.wait(text)
        begun = time.monotonic()
        command = [*elsewhere, sys.executable, "-m", "chaos", "gameday", "halt", "-i", str(inventory), "--by", "bench"]
        halt = subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL)
        stored = when_stored(inventory)
        at = day.wait(effect, begun)
        halt.wait(WALL)
        day.process.wait(WALL)
        if behind := left_behind(inventory, folder):
            raise RuntimeError(f"halted at {text!r}, left behind: {behind}")
    return at - begun, at - stored


def other_machine() -> tuple[str, ...]:
    """The command that runs another one with other lock files; none without namespaces."""
    try:
        return prefix()
    except pytest.skip.Exception as error:
        print(f"halt: from this machine, {error}", file=sys.stderr)
        return ()


def main() -> int:
    elsewhere, worst = other_machine(), 0.0
    for text, effect in PHASES:
        found = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as directory:
                found.append(halt_at(Path(directory), text, effect, elsewhere))
        from_command, from_state = (max(each) for each in zip(*found, strict=True))
        worst = max(worst, from_state)
        print(f"{text!r}: {effect!r} {from_command:.2f} s after the command, {from_state:.2f} s after its halt")
    print(f"halt: at most {worst:.2f} s (goal: {GOAL:g} s)")
    return int(worst >= GOAL)


if __name__ == "__main__":
    sys.exit(main())

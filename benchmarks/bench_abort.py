"""Time from the detection of a violated abort condition to the start of undo, in cluster time of the lab.

Read from the recordings of runs that must abort. Exit code 1 if the goal is missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.kit.processes import EXPERIMENTS, LAB, nodefall, until_undone

RUNS = int(os.environ.get("NODEFALL_ROUNDS", "5"))
GOAL = 2.0  # seconds


def run(directory: Path, seed: int) -> float:
    """The time in a run with this seed: no node may be not Ready, and one is powered off."""
    text = (EXPERIMENTS / "graceful-poweroff.yaml").read_text(encoding="utf-8")
    text = text.replace("not-ready-at-most: 1", "not-ready-at-most: 0")
    text = text.replace("workloads/web-db-tiers.yaml", str(EXPERIMENTS / "workloads" / "web-db-tiers.yaml"))
    experiment = directory / "abort.yaml"
    experiment.write_text(text)
    done = nodefall("run", experiment, "-i", LAB, "--plain", "--seed", str(seed), cwd=directory)
    if "aborted: abort condition" not in done.stdout:
        raise RuntimeError(done.stdout + done.stderr)
    return until_undone(next(directory.glob("reports/*/*/recording.jsonl.gz")))


def main() -> int:
    found = []
    for seed in range(1, RUNS + 1):
        with tempfile.TemporaryDirectory() as directory:
            found.append(run(Path(directory), seed))
    print(f"abort: {len(found)} runs, undo after {min(found):.2f} to {max(found):.2f} s (goal: {GOAL:g} s)")
    return int(max(found) >= GOAL)


if __name__ == "__main__":
    sys.exit(main())

"""CPU time of the live view at 1,000 nodes and 30,000 pods: of a redraw, and of reading what is new.

Run from the repository: ``python benchmarks/bench_live_view.py``. Each second of the run has 100 entries of nodes,
300 of pods and 20 of workloads, which change what is shown; the terminal has 200 columns and 50 lines. Times are CPU
times of this process (``time.process_time``), of 200 redraws. Exit code 1 if the goal is missed.
"""

from __future__ import annotations

import io
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.cli.run.view.frame import frame
from chaos.cli.run.view.screen import Screen
from tests.kit.live_views import Scene, deployment, named, pending
from tests.kit.small_timelines import pod

NODES, PODS, WORKLOADS, ROUNDS = 1000, 30_000, 400, 200
GOAL = 5.0  # milliseconds of CPU time, half of the redraws
SIZE = (200, 50)


def crowd() -> Scene:
    """A run with 100 targets, before its first step."""
    names = [f"worker-{number}" for number in range(NODES)]
    scene = Scene(targets=dict.fromkeys(names[:100], "victims"))
    scene.see("nodes", *(named("True", name) for name in names))
    scene.see("pods", *(pod("Running", on=names[number % NODES], uid=f"u{number}") for number in range(PODS)))
    scene.see("deployments", *(deployment(f"app-{number}", 3, 3, "prod") for number in range(WORKLOADS)))
    scene.at(1.0)
    scene.step("stop", *names[:100], what="systemctl stop kubelet")
    scene.fire()
    scene.phase("observe")
    return scene


def churn(scene: Scene, second: int) -> None:
    """What a second of the run changes."""
    scene.at(2.0 + second)
    ready = "Unknown" if second % 2 else "True"
    scene.see("nodes", *(named(ready, f"worker-{(second * 100 + number) % NODES}") for number in range(100)))
    scene.see("pods", *(pod("Running", on=f"worker-{number}", uid=f"u{number + second}") for number in range(300)))
    scene.see("deployments", *(deployment(f"app-{(second + n) % WORKLOADS}", second % 4, 3, "prod") for n in range(20)))
    scene.note(f"second {second} of the run")


def main() -> int:
    scene = crowd()
    begin = time.process_time()
    scene.judge([pending(f"expectation {number}", "2 of 5", 100_000.0) for number in range(12)])
    first = time.process_time() - begin
    screen = Screen(io.StringIO(), None)
    reads, redraws = [], []
    for second in range(ROUNDS):
        churn(scene, second)
        begin = time.process_time()
        scene.judge([pending(f"expectation {number}", f"{second} of 5", 100_000.0) for number in range(12)])
        read = time.process_time()
        screen.draw(frame(scene.state, *SIZE), SIZE, lambda: True)
        reads.append((read - begin) * 1000)
        redraws.append((time.process_time() - read) * 1000)
    median, worst = statistics.median(redraws), max(redraws)
    print(f"live view: {NODES} nodes, {PODS:,} pods: {median:.1f} ms a redraw (worst {worst:.1f}, goal {GOAL:g})")
    print(
        f"reading 420 new entries: {statistics.median(reads):.1f} ms; the first {NODES + PODS:,}: {first * 1000:.0f} ms"
    )
    return int(median >= GOAL)


if __name__ == "__main__":
    sys.exit(main())

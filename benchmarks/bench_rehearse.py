"""CPU time of an experiment from start to verdict: in process, and on a lab in a separate process beside it.

Run from the repository: ``python benchmarks/bench_rehearse.py``. Medians of interleaved runs of one experiment on 4
nodes, then 100 nodes, empty and with 30 pods each; then all shipped experiments in two processes. Exit code 1
if a goal is missed, or a verdict is not that of the experiment.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_scale import PODS_PER_NODE, objects

from chaos.app.lab_spec import lab_spec
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from chaos.lab.facade import DirectLab, LabSpec
from chaos.rehearsal.run import RehearsalOptions, rehearse_once
from tests.kit.experiment_runs import BUNDLED
from tests.kit.rehearsals import outcome
from tests.kit.rehearsals import rehearse as kit_rehearse

ROUNDS, LARGE = 5, 100
ROOT = Path(__file__).parent.parent
EXPERIMENT, INVENTORY = ROOT / "experiments" / "graceful-poweroff.yaml", ROOT / "hosts" / "lab.yaml"
GOAL = 1.0  # CPU seconds for 100 s of cluster time at 4 nodes, without the start of the process
SHIPPED_GOAL = 120.0  # seconds on two cores for all shipped experiments
LARGE_GOAL = 2.4  # for one run at 100 nodes: each of them in turn in 2 minutes on two cores
SETTLE = 30.0  # simulated seconds until the pods of the large cluster run


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_process(*arguments: str) -> float:
    """CPU seconds of a Python process and its children."""
    before = cpu_of_children()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu_of_children() - before


def fill(lab: DirectLab) -> None:
    """As bench_scale does."""
    for plural, body in objects(len(lab.cluster.machines)):
        lab.cluster.create_object(plural, body)
    lab.sim.run_until(lab.sim.now + SETTLE)


def rehearse(workers: int | None = None, populate: Callable[[DirectLab], None] | None = None) -> tuple[float, float]:
    """CPU seconds of a run, and its seconds of cluster time."""
    inventory = load_inventory(INVENTORY)
    assert inventory.lab is not None
    lab = inventory.lab.model_copy(update={"workers": workers} if workers else {})
    spec = msgspec.convert(lab_spec(lab, 1, 1_795_000_000.0), LabSpec)
    loaded = load(EXPERIMENT)
    more: dict[str, Any] = {"populate": populate} if populate else {}
    begin = time.process_time()
    run = rehearse_once(loaded, spec, 1, RehearsalOptions(inventory, **more))
    assert run.result.exit_code == 0, run.result.headline
    return time.process_time() - begin, run.timeline.end - run.timeline.start


def small() -> bool:
    """One experiment on 4 nodes, in each way."""
    alone, whole, process = [], [], []
    with TemporaryDirectory() as directory:
        command = ["-m", "chaos", "run", str(EXPERIMENT), "-i", str(INVENTORY), "--seed", "1", "--reports", directory]
        for _ in range(ROUNDS):
            cpu, seconds = rehearse()
            alone.append(cpu)
            whole.append(of_process(__file__, "--one"))
            process.append(of_process(*command))
    per_100 = statistics.median(alone) / seconds * 100
    print(
        f"{EXPERIMENT.stem}, 4 nodes, {seconds:.0f} s of cluster time, in CPU seconds (load {os.getloadavg()[0]:.1f}):"
    )
    print(f"  in process {statistics.median(alone):.2f}, which is {per_100:.2f} for 100 s (goal: {GOAL:g}); ", end="")
    print(f"with the start of Python {statistics.median(whole):.2f}; ", end="")
    print(f"nodefall run with its lab {statistics.median(process):.2f}", flush=True)
    return per_100 <= GOAL


def large() -> bool:
    """The same at 100 nodes."""
    empty, seconds = rehearse(LARGE - 1)
    full, _ = rehearse(LARGE - 1, fill)
    print(f"{LARGE} nodes, {seconds:.0f} s of cluster time: {empty:.2f} s of CPU (goal: {LARGE_GOAL:g}); ", end="")
    print(f"with {LARGE * PODS_PER_NODE} pods {full:.2f}, the start of them included")
    return empty <= LARGE_GOAL


def shipped() -> bool:
    """All shipped experiments, every second one in each process."""
    wall, cpu = time.monotonic(), cpu_of_children()
    halves = [subprocess.Popen([sys.executable, __file__, "--half", str(number)]) for number in range(2)]
    codes = [process.wait() for process in halves]
    wall, cpu = time.monotonic() - wall, cpu_of_children() - cpu
    print(f"{len(BUNDLED)} shipped experiments in two processes: {cpu:.0f} s of CPU, {wall:.0f} s ", end="")
    verdicts = "not all verdicts right" if any(codes) else "all verdicts right"
    print(f"(load {os.getloadavg()[0]:.1f}; goal: {SHIPPED_GOAL:g} s), {verdicts}")
    return not any(codes) and wall <= SHIPPED_GOAL


def half(number: int) -> int:
    """Every second experiment in this process; exit code 1 if a verdict is not that of the experiment."""
    wrong = 0
    for name in list(BUNDLED)[number::2]:
        run = kit_rehearse(name)
        if outcome(run) != BUNDLED[name].notes["verdict"]:
            print(f"{name}: {run.result.headline}")
            wrong += 1
    return int(wrong > 0)


def main() -> int:
    """Print the figures; exit code 1 if a goal is missed."""
    if sys.argv[1:2] == ["--half"]:
        return half(int(sys.argv[2]))
    if sys.argv[1:] == ["--one"]:
        rehearse()
        return 0
    results = [small(), large(), shipped()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

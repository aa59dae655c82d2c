"""Cost of a live judgement on a large cluster: CPU of each tick, memory, and how long observers wait for it.

Run from the repository: ``python benchmarks/bench_ticks.py [NODES PODS EVENTS_PER_SECOND SECONDS]``. The verdicts are
compared with those of a judgement of the recording from its first entry on. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from judge_load import BEGIN, T0, VICTIM, Cluster

import chaos.actions
import chaos.assertions
from chaos.app.load import LoadedExperiment
from chaos.app.run_setup import LiveJudge
from chaos.cli.run.gc_tuning import tune_gc
from chaos.engine.recorder import Recorder
from chaos.judge.context import Options
from chaos.judge.judge import judge
from chaos.load.experiment import load_experiment
from chaos.model.decode import decode
from chaos.model.recording import RecordingEntry
from chaos.model.registry import PluginRegistry, discover
from chaos.model.result import RunResult
from chaos.store.recording import build_timeline, read_recording
from chaos.store.recording_writer import RecordingWriter

TICK_GOAL, MEMORY_GOAL = 0.020, 1024  # CPU seconds, MiB
EXPERIMENT = """
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: large}
spec:
  title: A node of a large cluster goes off
  targets: {victim: {role: worker}}
  steadyState:
    - {assert: nodes-ready, with: {nodes: all}}
    - {assert: workload-available, with: {namespace: workload}}
  method:
    - {name: "off", action: power-cut, target: victim}
  hypothesis:
    - {name: h1, assert: nodes-ready, with: {not-ready-at-most: 1}, always: {for: 1h}}
    - {name: h2, assert: node-condition, with: {node: victim, type: Ready, status: Unknown}, within: 60s}
    - {name: h3, assert: pods, with: {node: victim, at: "off", none: {phase: Failed}}, always: {for: 1h}}
    - {name: h4, assert: pods, with: {node: victim, at: "off", each: {replaced: {}}}, within: 1h}
    - {name: h5, assert: pods, with: {namespace: workload, count: {least: LEAST, ready: true}}, always: {for: 1h}}
    - {name: h6, assert: workload-available, with: {namespace: workload}, always: {for: 1h}}
    - {name: h7, assert: budget-respected, with: {namespace: workload, by: [eviction]}, always: {for: 1h}}
    - {name: h8, assert: event, with: {node: victim, reason: NodeNotReady}, within: 1h}
    - {name: h9, assert: lease-fresh, with: {node: victim, fresh: false}, within: 60s}
    - {name: h10, assert: pods-started, with: {node: victim}, never: {for: 1h}}
  recovery: {within: 5m}
  maxDuration: 2h
"""


class SimulatedClock:
    t = T0

    def now(self) -> float:
        return self.t


class WaitMeter:
    """An observer that emits a reading every few milliseconds, from a separate thread, and measures its waits."""

    def __init__(self, recorder: Recorder, clock: SimulatedClock) -> None:
        self.recorder, self.clock = recorder, clock
        self.waits: list[float] = []
        self.is_judging = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> WaitMeter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            if not self.is_judging:
                continue
            begin = time.perf_counter()
            self.recorder.emit(RecordingEntry(self.clock.t, "host", "uptime", msgspec.Raw(b"1"), node=VICTIM))
            self.waits.append(time.perf_counter() - begin)


def memory() -> int:
    """MiB in use now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def registry() -> PluginRegistry:
    return PluginRegistry(discover(chaos.actions, "ACTION"), discover(chaos.assertions, "ASSERTION"))


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def emitted(recorder: Recorder, entries: Iterator[RecordingEntry]) -> tuple[int, float]:
    """Emit entries; their number, and the CPU seconds of the recorder."""
    made = list(entries)
    begin = time.thread_time()
    for each in made:
        recorder.emit(each)
    return len(made), time.thread_time() - begin


def statuses(result: RunResult) -> dict[str, str]:
    return {v.name: f"{v.status} {v.because}" for v in (*result.hypothesis, *result.recovery)}


def run(sizes: tuple[int, int, int, int], folder: Path) -> bool:
    nodes, pods, rate, seconds = sizes
    (folder / "experiment.yaml").write_text(EXPERIMENT.replace("LEAST", str(pods // 20)))
    plugins = registry()
    experiment = load_experiment(folder / "experiment.yaml", plugins)
    clock, cluster = SimulatedClock(), Cluster(nodes, pods, rate)
    options = Options(bind={"victim": (VICTIM,)}, namespace="demo")
    before = memory()
    with RecordingWriter(folder / "recording.jsonl.gz") as writer:
        recorder = Recorder(decode, clock, writer.write)  # type: ignore[arg-type]  # only now() is used
        live = LiveJudge(LoadedExperiment(folder / "experiment.yaml", experiment, []), plugins, recorder, options)
        count, _ = emitted(recorder, cluster.listed())
        listed, ticks, emit = memory() - before, [], 0.0
        with WaitMeter(recorder, clock) as waiting:
            for second in range(1, seconds):
                number, cpu = emitted(recorder, cluster.second(second))
                count, emit, clock.t = count + number, emit + cpu, T0 + second + 1
                waiting.is_judging = True
                begin = time.thread_time()
                live.judge(True) if second > BEGIN else live.steady_state()
                ticks.append(time.thread_time() - begin)
                waiting.is_judging = False
                if second % 300 == 0:
                    report(ticks[-300:], count, memory() - before)
        final = live.judge(False)
    gc.collect()
    used = memory() - before
    print(f"{nodes} nodes, {pods} pods, {rate} entries a second for {seconds} s: {count} entries")
    print(f"recorder: {1e6 * emit / count:.0f} us CPU an entry; observers wait", end=" ")
    print(f"p99 {1e3 * percentile(waiting.waits, 0.99):.1f} ms, at most {1e3 * max(waiting.waits, default=0):.1f} ms")
    print(f"memory: {listed} MiB after the first lists, {used} MiB at the end, ", end="")
    print(f"{(used - listed) * 2**20 / max(1, count - pods - 2 * nodes):.0f} bytes an entry since")
    report(ticks[BEGIN:], count, used)
    begin = time.thread_time()
    offline = judge(experiment, build_timeline(read_recording(folder / "recording.jsonl.gz")), plugins, options)
    same = statuses(offline) == statuses(final)
    print(f"offline: {time.thread_time() - begin:.1f} s CPU; the same verdicts: {'yes' if same else 'NO'}")
    for name, text in statuses(offline).items():
        print(f"  {name}: {text[:110]}" + ("" if same else f"\n    live: {statuses(final).get(name)}"))
    return same and used < MEMORY_GOAL and percentile(ticks[BEGIN:], 0.99) < TICK_GOAL


def report(ticks: list[float], count: int, used: int) -> None:
    p50, p99 = percentile(ticks, 0.5), percentile(ticks, 0.99)
    print(f"tick: p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms CPU ({count} entries, {used} MiB)", flush=True)


def main() -> int:
    tune_gc()  # as every run does
    given = [int(word) for word in sys.argv[1:]]
    nodes, pods, rate, seconds = given if len(given) == 4 else (1000, 30_000, 1000, 120)
    with tempfile.TemporaryDirectory() as folder:
        return 0 if run((nodes, pods, rate, seconds), Path(folder)) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(main())

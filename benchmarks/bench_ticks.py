"""Cost of a live judgement on a large cluster: CPU of each tick, memory, and how long observers wait for it.

Run from the repository: ``python benchmarks/bench_ticks.py [NODES PODS EVENTS_PER_SECOND SECONDS [EVERY]]``; it is
judged each second, or after EVERY seconds. A tick takes in what is new, which the timeline grows by, and judges: both
are shown. Then a second process judges the recording from its first entry on: its peak of memory is shown, and its
verdicts must be the same. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from judge_load import BEGIN, T0, VICTIM, Cluster

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.cli.output import tune_gc
from chaos.core.action import Action
from chaos.core.decode import decode
from chaos.core.recording import RecordingEntry
from chaos.core.registry import PluginRegistry, discover
from chaos.core.result import RunResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.store.recording_writer import RecordingWriter
from chaos.documents.experiment import load_experiment
from chaos.engine.live_judge import LiveJudge
from chaos.engine.load import LoadedExperiment
from chaos.engine.recorder import Recorder
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge

TICK_GOAL, MEMORY_GOAL = 0.020, 1024  # CPU seconds, MiB
OFFLINE = "offline"
OPTIONS = Options(bind={"victim": (VICTIM,)}, namespace="demo")
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


def peak() -> int:
    """MiB that this process has used at most; ru_maxrss has what its parent used, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) >> 10


def registry() -> PluginRegistry:
    return PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))


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


class Ticks:
    """CPU seconds of taking in what is new, and of judging, by tick after the fault."""

    def __init__(self) -> None:
        self.grown: list[float] = []
        self.judged: list[float] = []

    def report(self, count: int, used: int) -> None:
        both = [one + other for one, other in zip(self.grown, self.judged, strict=True)]
        parts = [
            f"{name} p50 {1e3 * percentile(values, 0.5):.1f} p99 {1e3 * percentile(values, 0.99):.1f}"
            for name, values in (("tick", both), ("of these new entries", self.grown), ("judgement", self.judged))
        ]
        print(f"{', '.join(parts)} ms CPU ({count} entries, {used} MiB)", flush=True)

    def take(self, recorder: Recorder, live: LiveJudge, *, is_armed: bool) -> None:
        begin = time.thread_time()
        recorder.timeline()
        grown = time.thread_time()
        live.judge(True) if is_armed else live.steady_state()
        if is_armed:
            self.grown.append(grown - begin)
            self.judged.append(time.thread_time() - grown)

    def p99(self) -> float:
        return percentile([one + other for one, other in zip(self.grown, self.judged, strict=True)], 0.99)


def live_run(sizes: tuple[int, int, int, int, int], folder: Path) -> tuple[dict[str, str], bool]:
    """The verdicts of a run, and whether it meets the goals."""
    nodes, pods, rate, seconds, every = sizes
    plugins = registry()
    experiment = load_experiment(folder / "experiment.yaml", plugins)
    clock, cluster, ticks = SimulatedClock(), Cluster(nodes, pods, rate), Ticks()
    before = memory()
    with RecordingWriter(folder / "recording.jsonl.gz") as writer:
        recorder = Recorder(decode, clock, writer.write)  # type: ignore[arg-type]  # only now() is used
        live = LiveJudge(LoadedExperiment(folder / "experiment.yaml", experiment, [], plugins), recorder, OPTIONS)
        count, _ = emitted(recorder, cluster.listed())
        live.steady_state()
        listed, emit = memory() - before, 0.0
        with WaitMeter(recorder, clock) as waiting:
            for second in range(1, seconds):
                number, cpu = emitted(recorder, cluster.second(second))
                count, emit, clock.t = count + number, emit + cpu, T0 + second + 1
                waiting.is_judging = True
                if second % every == 0 or second == BEGIN - 1:
                    ticks.take(recorder, live, is_armed=second > BEGIN)
                else:
                    recorder.timeline()
                waiting.is_judging = False
                if second % 300 == 0:
                    ticks.report(count, memory() - before)
        final = live.judge(False)
    gc.collect()
    used = memory() - before
    print(f"{nodes} nodes, {pods} pods, {rate} entries a second for {seconds} s: {count} entries")
    print(f"recorder: {1e6 * emit / count:.0f} us CPU an entry; observers wait", end=" ")
    print(f"p99 {1e3 * percentile(waiting.waits, 0.99):.1f} ms, at most {1e3 * max(waiting.waits, default=0):.1f} ms")
    print(f"memory: {listed} MiB after the first lists, {used} MiB at the end, ", end="")
    print(f"{(used - listed) * 2**20 / max(1, count - pods - 2 * nodes):.0f} bytes an entry since; peak {peak()} MiB, ")
    print(f"of which {before} MiB are Python and the simulated cluster")
    ticks.report(count, used)
    return statuses(final), used < MEMORY_GOAL and ticks.p99() < TICK_GOAL


def offline(folder: Path) -> dict[str, str]:
    """The verdicts on the recording."""
    plugins = registry()
    experiment = load_experiment(folder / "experiment.yaml", plugins)
    timeline = build_timeline(read_recording(folder / "recording.jsonl.gz"))
    return statuses(judge(experiment, timeline, plugins, OPTIONS))


def run(sizes: tuple[int, int, int, int, int], folder: Path) -> bool:
    (folder / "experiment.yaml").write_text(EXPERIMENT.replace("LEAST", str(sizes[1] // 20)))
    found, is_good = live_run(sizes, folder)
    child = subprocess.run([sys.executable, __file__, OFFLINE, str(folder)], stdout=subprocess.PIPE, check=True)
    others, most, cpu = msgspec.json.decode(child.stdout, type=tuple[dict[str, str], int, float])
    same = others == found
    print(f"offline: {cpu:.1f} s CPU, peak {most} MiB; the same verdicts: {'yes' if same else 'NO'}")
    for name, text in others.items():
        print(f"  {name}: {text[:110]}" + ("" if same else f"\n    live: {found.get(name)}"))
    return same and most < MEMORY_GOAL and is_good


def main() -> int:
    tune_gc()  # as every run does
    if sys.argv[1:2] == [OFFLINE]:
        found = offline(Path(sys.argv[2]))
        sys.stdout.buffer.write(msgspec.json.encode((found, peak(), time.process_time())))
        return 0
    given = [int(word) for word in sys.argv[1:]]
    nodes, pods, rate, seconds = given[:4] if len(given) >= 4 else (1000, 30_000, 1000, 120)
    every = given[4] if len(given) == 5 else 1
    with tempfile.TemporaryDirectory() as folder:
        return 0 if run((nodes, pods, rate, seconds, every), Path(folder)) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(main())

"""Delay from the change of an object in the lab to its arrival at the observers, and their memory.

Run from the repository: ``python benchmarks/bench_observers.py [SECONDS]``, 30 by default: 1,000 changes of pods a
second. All observers of a cluster run in this process, on this machine's clock as for a real cluster; the lab is
another process.
"""

from __future__ import annotations

import re
import resource
import statistics
import sys
import time
from typing import Any

from lab_load import lab_load, start_load

from chaos.clock import SystemClock
from chaos.kube.client import connect
from chaos.model.recording import RecordingEntry
from chaos.observers.cluster import ClusterObservers

RATE = 1_000
VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Sink:
    """When each version of a pod was received."""

    def __init__(self) -> None:
        self.received: dict[int, float] = {}
        self.duplicates = 0

    def __call__(self, line: RecordingEntry) -> None:
        if line.kind == "pods" and line.type != "BOOKMARK":
            version = int(VERSION.findall(bytes(line.object))[0])
            self.duplicates += version in self.received
            self.received[version] = time.monotonic()


def run(seconds: float) -> tuple[dict[str, Any], Sink]:
    sink = Sink()
    with lab_load(RATE, seconds) as (process, facts):
        clock = SystemClock()
        api = connect(facts["kubeconfig"])
        watches = ClusterObservers(api, clock).watches
        for watch in watches:
            watch.start(sink)
        while not all(watch.has_synced() for watch in watches):
            time.sleep(0.05)
        time.sleep(0.5)
        cpu = time.process_time()
        figures = start_load(process)
        figures["observers"] = (time.process_time() - cpu) / seconds
        deadline = time.monotonic() + 10
        while figures["stamps"][-1][0] not in sink.received and time.monotonic() < deadline:
            time.sleep(0.05)
        for watch in watches:
            watch.stop()
        clock.wake()
        api.close()
    return figures, sink


def main() -> int:
    """Print one line; exit code 1 if a goal is missed."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    figures, sink = run(seconds)
    lags = [sink.received[version] - stamp for version, stamp in figures["stamps"] if version in sink.received]
    lost = len(figures["stamps"]) - len(lags)
    median, late = statistics.median(lags) * 1000, statistics.quantiles(lags, n=100)[98] * 1000
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"observers: {figures['rate']:,.0f} events/s for {seconds:.0f} s at {figures['observers']:.0%} of a CPU, "
        f"lag {median:.1f} ms (99%: {late:.0f} ms), {lost} lost, {sink.duplicates} doubled, {memory:.0f} MB "
        f"(goal: {RATE:,}/s, median under 100 ms, none, 500 MB)"
    )
    return 0 if median < 100 and not lost and not sink.duplicates and memory < 500 else 1


if __name__ == "__main__":
    sys.exit(main())

"""CPU time of ``report.html`` for a run of 100,000 entries.

Run from the repository: ``python benchmarks/bench_report.py``. A recording of a real cluster is repeated, with later
times, as for ``bench_judge.py``. Exit code 1 if rendering takes a second or more.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench_judge import ROOT, multiply

from chaos.core.store.recording import build_timeline, read_recording
from chaos.documents.experiment import load_experiment
from chaos.engine.registry import load_registry
from chaos.reports.run.html import render
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge

GOAL = 1.0  # CPU seconds


def main() -> int:
    """Print one line; exit code 1 if the goal is missed."""
    plugin_registry = load_registry()
    experiment = load_experiment(ROOT / "experiments" / "graceful-poweroff.yaml", plugin_registry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.jsonl.gz"
        count = multiply(path)
        timeline = build_timeline(read_recording(path))
    result = judge(experiment, timeline, plugin_registry, Options(namespace="demo"))
    begin = time.process_time()
    page = render(result, timeline)
    seconds = time.process_time() - begin
    size = len(page) / 1e6
    print(f"report.html of {count:,} entries: {size:.1f} MB in {seconds:.2f} s of CPU (goal: under {GOAL:g} s)")
    return int(seconds >= GOAL)


if __name__ == "__main__":
    sys.exit(main())

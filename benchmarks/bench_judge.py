"""Throughput of ``judge`` in recording entries per second: unzip, decode, timeline, all assertions.

Run from the repository: ``python benchmarks/bench_judge.py``. A recording of a real cluster is repeated, with later
times, until it has 100,000 lines.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from chaos.core.recording import RecordingEntry
from chaos.core.store.recording import build_timeline, read_recording
from chaos.documents.experiment import load_experiment
from chaos.engine.registry import load_registry
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "tests" / "recordings" / "01-graceful-poweroff.jsonl.gz"
LINES = 100_000


def multiply(path: Path) -> int:
    """Write ``LINES`` lines: the recording, then its lines but the actions again and again; the number written."""
    lines = list(read_recording(RECORDING))
    length = lines[-1].t - lines[0].t + 1
    again = [line for line in lines[1:] if line.kind != "action"]
    out = [msgspec.json.encode(line) for line in lines]
    turn = 0
    while len(out) < LINES:
        turn += 1
        out += [msgspec.json.encode(msgspec.structs.replace(line, t=line.t + turn * length)) for line in again]
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(b"\n".join(out) + b"\n")
    return len(out)


def main() -> int:
    """Print one line a phase; exit code 1 if the whole is slower than 20,000 lines a second."""
    plugin_registry = load_registry()
    experiment = load_experiment(ROOT / "experiments" / "graceful-poweroff.yaml", plugin_registry)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.jsonl.gz"
        count = multiply(path)
        begin = time.perf_counter()
        kinds = sum(isinstance(line, RecordingEntry) for line in read_recording(path))
        read = time.perf_counter()
        timeline = build_timeline(read_recording(path))
        built = time.perf_counter()
        result = judge(experiment, timeline, plugin_registry, Options(namespace="demo"))
        judged = time.perf_counter()
    whole = judged - read
    print(f"{count} lines, {kinds} read alone in {read - begin:.2f}s")
    print(f"read, decoded and put into a timeline in {built - read:.2f}s; judged in {judged - built:.2f}s")
    print(f"{count / whole:,.0f} lines a second ({result.headline})")
    return 0 if count / whole >= 20_000 else 1


if __name__ == "__main__":
    sys.exit(main())

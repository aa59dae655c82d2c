"""``nodefall snapshot`` of a lab with 1,000 nodes and 30,000 pods: its CPU time, memory and file.

Run from the repository: ``python benchmarks/bench_snapshot.py [NODES]``; fewer nodes have fewer pods. Exit code 1 if a
goal is missed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_scale import PODS_PER_NODE, SPEED, Client, describe, lab_spec, objects

from chaos.app.labs import make_inventory

CPU_GOAL, MEMORY_GOAL = 20.0, 300  # seconds, MiB


def snapshot(inventory: Path, out: Path, *options: str) -> tuple[float, int, float]:
    """CPU seconds, peak memory in MiB and wall seconds of one command."""
    command = [sys.executable, "-m", "chaos", "snapshot", "-i", str(inventory), "--out", str(out), *options]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    print(text, end="")
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError("the snapshot is not complete")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10, time.perf_counter() - begin


def main() -> int:
    """Both forms; exit code 1 if a goal is missed."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    describe(nodes)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 16384)), hard))
    command = [sys.executable, "-m", "chaos.lab", "--speed", str(SPEED)]
    reached = True
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as lab,
    ):
        assert lab.stdin is not None
        assert lab.stdout is not None
        lab.stdin.write(lab_spec(nodes).to_json() + b"\n")
        lab.stdin.flush()
        facts = json.loads(lab.stdout.readline())
        client = Client(facts)
        for plural, body in objects(nodes):
            client.create(plural, body)
        while client.ready_pods() < nodes * PODS_PER_NODE:
            time.sleep(0.5)
        inventory, out = Path(folder, "inventory.json"), Path(folder, "copy.snapshot.gz")
        inventory.write_text(make_inventory(facts).model_dump_json(by_alias=True, exclude_none=True))
        for options in ((), ("--anonymize",)):
            cpu, memory, wall = snapshot(inventory, out, *options)
            size = out.stat().st_size / (1 << 20)
            form = " ".join(options) or "plain"
            print(f"{form}: {cpu:.1f} s CPU, {memory} MiB at most, {wall:.1f} s wall; {size:.1f} MiB")
            print(f"  (goals: {CPU_GOAL:.0f} s CPU, {MEMORY_GOAL} MiB)")
            reached = reached and cpu < CPU_GOAL and memory < MEMORY_GOAL
        lab.stdin.write(b"stop\n")
        lab.stdin.flush()
        lab.wait(60)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

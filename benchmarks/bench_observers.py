"""CPU time, delay and memory of the observers at 1,000 changes a second of 30,000 pods, beside other clients.

Run from the repository: ``python benchmarks/bench_observers.py [SECONDS [PODS [CLIENT...]]]``, by default 10 seconds
for each client of ``watch_clients.py``. Each is a separate process that watches the same lab, another process. The
ratio is the throughput of a CPU, compared with what urllib3 and msgspec alone can do in the last run of them before it:
they wake up for each event, as the other clients do, and nodefall every 40 ms. kr8s and lightkube are left out
unless they are installed (``pip install . kr8s lightkube`` in a virtual environment for this); they and the official
client decode all fields, and have no cache of the pods.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lab_load import lab_load, read_line, start_load
from watch_clients import CLIENTS

RATE, PODS = 1_000, 30_000
RATIO_GOALS = {"observer": 0.75, "recording": 0.5, "everything": 0.5}
LAG_GOAL = 100.0  # ms, median


def run(name: str, lab: subprocess.Popen[str], kubeconfig: str) -> dict[str, Any] | None:
    """The figures of a client, and those of its load; None if the client fails."""
    command = [sys.executable, str(Path(__file__).with_name("watch_clients.py")), name, kubeconfig]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        if read_line(client) != "synced\n":
            return None
        time.sleep(1)  # its watch is open
        figures = start_load(lab)
        client.stdin.write(f"{figures['stamps'][-1][0]}\n")
        client.stdin.flush()
        figures["client"] = json.loads(read_line(client))
        client.kill()
    return figures


def report(name: str, figures: dict[str, Any], raw: float | None) -> tuple[float, bool]:
    """Print a line; CPU time of an event in seconds, and whether all goals of the client are reached."""
    client = figures["client"]
    received = {int(version): t for version, t in client["received"]}
    lags = [(received[version] - stamp) * 1000 for version, stamp in figures["stamps"] if version in received]
    if len(lags) < 2:
        raise SystemExit(f"{name} received {len(lags)} events")
    lost, doubled = len(figures["stamps"]) - len(lags), client["events"] - len(received)
    median, late = statistics.median(lags), statistics.quantiles(lags, n=100)[98]
    cost = client["cpu"] / client["events"]
    ratio, goal = (raw or cost) / cost, RATIO_GOALS.get(name)
    print(
        f"{CLIENTS[name][0]:45} {cost * 1e6:6.0f} us, ratio {ratio:.2f}{f' (goal {goal})' if goal else '':12}, "
        f"lag {median:.1f} ms (99%: {late:.0f} ms), {lost} lost, {doubled} doubled, {client['memory']:.0f} MB",
        flush=True,
    )
    return cost, not goal or (ratio >= goal and not lost and not doubled and median < LAG_GOAL)


def main() -> int:
    """Print a line for each client; exit code 1 if nodefall misses a goal."""
    seconds, pods, *names = [*sys.argv[1:], *("10", str(PODS))[len(sys.argv) - 1 :]]
    names = names or [name for name in CLIENTS if name not in ("kr8s", "lightkube") or find_spec(name)]
    goals, raw = [], None
    with lab_load(RATE, float(seconds), int(pods)) as (lab, facts):
        print(f"{RATE:,} changes a second for {seconds} s, {int(pods):,} pods, CPU time of each event:")
        for name in names:
            figures = run(name, lab, facts["kubeconfig"])
            if figures is None:
                print(f"{CLIENTS[name][0]:45} failed")
                goals.append(name not in RATIO_GOALS)
                continue
            cost, is_good = report(name, figures, raw)
            raw = cost if name == "raw" else raw
            goals.append(is_good)
    return 0 if all(goals) else 1


if __name__ == "__main__":
    sys.exit(main())

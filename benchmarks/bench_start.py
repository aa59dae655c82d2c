"""Start-up time of ``nodefall --version`` beside ``python -c pass``, and CPU time of ``nodefall validate FILE``.

Medians of interleaved runs. Exit code 1 if ``validate`` misses its goal. Wall times depend on the machine's other load.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 25
EXPERIMENT = Path(__file__).parent.parent / "experiments" / "graceful-poweroff.yaml"
VALIDATE_GOAL = 0.35  # CPU seconds


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*arguments: str) -> tuple[float, float]:
    """Wall and CPU seconds of a Python process."""
    begin, cpu = time.perf_counter(), cpu_of_children()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin, cpu_of_children() - cpu


def main() -> int:
    bare, version, validate = [], [], []
    for _ in range(ROUNDS):
        bare.append(run("-c", "pass")[0])
        version.append(run("-m", "chaos", "--version")[0])
        validate.append(run("-m", "chaos", "validate", str(EXPERIMENT))[1])
    ratio, cpu = statistics.median(version) / statistics.median(bare), statistics.median(validate)
    print(
        f"nodefall --version: {statistics.median(version) * 1000:.0f} ms, python -c pass: "
        f"{statistics.median(bare) * 1000:.0f} ms, ratio {ratio:.1f} (goal: at most 6)"
    )
    print(f"nodefall validate: {cpu:.2f} s of CPU (goal: under {VALIDATE_GOAL:g} s)")
    return int(cpu >= VALIDATE_GOAL)


if __name__ == "__main__":
    sys.exit(main())

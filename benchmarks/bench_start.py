"""Start-up time of ``nodefall --version``, compared with ``python -c pass``: medians of interleaved runs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 25


def wall(*arguments: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    bare, version = [], []
    for _ in range(ROUNDS):
        bare.append(wall("-c", "pass"))
        version.append(wall("-m", "chaos", "--version"))
    ratio = statistics.median(version) / statistics.median(bare)
    print(
        f"nodefall --version: {statistics.median(version) * 1000:.0f} ms, python -c pass: "
        f"{statistics.median(bare) * 1000:.0f} ms, ratio {ratio:.1f} (goal: at most 6)"
    )


if __name__ == "__main__":
    main()

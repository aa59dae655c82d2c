"""``python -m tests.oracle --pairs 100000 --seed 7 -j 2``: compare the judge with the oracle."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.oracle.compare import Call, Tally, calls, compare, recordings
from tests.oracle.shrink import shrunk


def _compare(call: Call, shown: int) -> tuple[Tally, list[str]]:
    """The counts of a call, and its failures as text: the first ones shrunk, with their commands."""
    tally = compare(*call)
    texts = [f.text() + (f"\n  {shrunk(f).command()}" if i < shown else "") for i, f in enumerate(tally.failures)]
    tally.failures.clear()
    return tally, texts


def main() -> int:
    """Print the counts and the reversed verdicts as commands; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutations", type=int, default=1, help="mutated recordings for each set of expectations")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--recordings", type=Path, nargs="*", help="default: those of the tests")
    parser.add_argument("--shrink", type=int, default=0, help="so many failures of each set are shrunk and written")
    given = parser.parse_args()
    began, total, texts = time.monotonic(), Tally(), list[str]()
    todo = list(calls(given.pairs, given.seed, given.recordings or recordings(), given.mutations))
    with ProcessPoolExecutor(given.jobs) as pool:
        for tally, found in pool.map(_compare, todo, [given.shrink] * len(todo)):
            total.add(tally)
            texts += found
    sys.stdout.write("\n\n".join([total.table(), *texts]))
    sys.stdout.write(f"\n\n{total.pairs} pairs in {time.monotonic() - began:.0f} s, {len(texts)} reversed\n")
    return 1 if texts else 0


if __name__ == "__main__":
    raise SystemExit(main())

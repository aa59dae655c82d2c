"""``python -m tests.oracle --pairs 100000 --seed 7 -j 2``: compare the judge with the oracle."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.oracle.compare import Tally, compare, pairs_of, recordings


def _compare(call: tuple[Path, int, int, int]) -> Tally:
    return compare(*call)


def main() -> int:
    """Print the counts and the reversed verdicts as commands; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutations", type=int, default=1, help="mutated recordings for each set of expectations")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--recordings", type=Path, nargs="*", help="default: those of the tests")
    parser.add_argument("--commands", type=int, default=10, help="so many of the reversed ones are written to files")
    given = parser.parse_args()
    began, tally = time.monotonic(), Tally()
    calls = list(pairs_of(given.pairs, given.seed, given.recordings or recordings(), given.mutations))
    if given.jobs > 1:
        with ProcessPoolExecutor(given.jobs) as pool:
            for each in pool.map(_compare, calls):
                tally.add(each)
    else:
        for call in calls:
            tally.add(_compare(call))
    print(tally.table())
    for i, r in enumerate(tally.reversals):
        print(f"\n{r.recording}, {r.rule}: judge {r.judged}, right is {r.right}\n  {r.expectation}")
        if i < given.commands:
            print(f"  {r.command()}")
    print(f"\n{tally.pairs} pairs in {time.monotonic() - began:.0f} s, {len(tally.reversals)} reversed")
    return 1 if tally.reversals else 0


if __name__ == "__main__":
    raise SystemExit(main())

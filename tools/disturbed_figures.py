"""Sums up the figures of runs with late watches and on a starved API server (NODEFALL_DISTURBED_FIGURES).

Prints two sentences for README.md and each run that needs a look; exit code 1 if a goal is missed: no verdict reversed,
none inconclusive of which all had been delivered by its deadline, and few inconclusive runs on a starved API server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KINDS = {"late": "late watches", "starved": "starved API server"}
MOST_INCONCLUSIVE = {"late": 1.0, "starved": 0.02}  # of the runs
Row = dict[str, Any]


def summary(rows: Sequence[Row], kind: str) -> str:
    """``starved API server: 500 runs, 0 with a reversed verdict, 3 inconclusive (0.6 %); 14.2 CPU seconds a run``."""
    some = [row for row in rows if row["kind"] == kind]
    if not some:
        return f"{KINDS[kind]}: not run"
    runs, open_runs = len(some), sum(is_open(row) for row in some)
    parts = [
        f"{KINDS[kind]}: {runs} runs",
        f"{sum(bool(row['reversed']) for row in some)} with a reversed verdict",
        f"{open_runs} inconclusive ({100 * open_runs / runs:.1f} %)",
    ]
    if kind == "late":
        parts[-1] += f", {sum(bool(row['unexcused']) for row in some)} of them though all was delivered by the deadline"
    return f"{', '.join(parts)}; {sum(row['cpu'] for row in some) / runs:.1f} CPU seconds a run"


def is_open(row: Row) -> bool:
    """Whether any verdict is inconclusive, or none came about as the run was refused before the fault."""
    return bool(row["refused"]) or "inconclusive" in row["statuses"].values()


def missed(rows: Sequence[Row]) -> list[str]:
    """The goals that are missed, by kind."""
    found = [f"{row['kind']} {row['seed']}: {row['experiment']}" for row in rows if row["reversed"] or row["unexcused"]]
    for kind, most in MOST_INCONCLUSIVE.items():
        some = [row for row in rows if row["kind"] == kind]
        open_runs = sum(is_open(row) for row in some)
        if open_runs > most * len(some):
            found.append(f"{KINDS[kind]}: {open_runs} of {len(some)} runs are inconclusive")
    return found


def describe(row: Row) -> list[str]:
    """What to look at: the verdicts that differ from the undisturbed run, and why."""
    name = f"{row['kind']} {row['seed']}, {row['experiment']}"
    if row["refused"]:
        return [f"{name}: refused: {row['refused']}"]
    return [f"{name}: {verdict}: {row['statuses'][verdict]}: {why}" for verdict, why in row["because"].items()]


def main(path: str) -> int:
    """Print the figures. 1 if a goal is missed."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    lines = [summary(rows, kind) for kind in KINDS]
    lines += [line for row in rows for line in describe(row)]
    goals = missed(rows)
    sys.stdout.write("\n".join([*lines, *(f"missed: {goal}" for goal in goals)]) + "\n")
    return 1 if goals else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))

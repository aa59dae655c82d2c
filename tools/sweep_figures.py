"""Writes docs/death-sweep.md from the figures of a death sweep (NODEFALL_SWEEP_FIGURES)."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

HEAD = """# Death sweep: figures of the last run

Each action runs on the lab and is interrupted by SIGKILL, SIGTERM, SIGINT, a full disk, a lost network or a lost
terminal at a position of its journal. Some cases interrupt the undo, too, with a second SIGKILL (`returned+strike`).
Then `nodefall undo` runs twice. A case left something behind if packet filter rules, units, timers, files, power,
taints, conditions, leases, config maps, namespaces, pods or workloads differ from those before the run, or if the
second undo changed anything. The lock of a run that was killed without a pending undo does not count: the next run
takes it over.

{tried} of {all} cases were tried{chosen}. In {hit} of them the run reached the position; in the others it
ended earlier. {left} left something behind.

`.ci/nightly` tries all of them and prints this page; `NODEFALL_SWEEP_POSITIONS` selects some:

    NODEFALL_SWEEP_POSITIONS="partition:planted:SIGKILL poweroff:returned:lost-network" \\
      .venv/bin/python -m pytest -s tests/sweep

| action | positions | cases | tried | hit | left behind |
|---|---|---|---|---|---|
"""


def page(rows: list[dict[str, Any]]) -> str:
    """The page. A row: action, positions, all (cases), tried, hit, left (names of cases that left something behind)."""
    cells = [(r["action"], len(r["positions"]), r["all"], r["tried"], r["hit"]) for r in rows]
    places, cases, tried, hit = (sum(int(cell[n]) for cell in cells) for n in (1, 2, 3, 4))
    left = [name for row in rows for name in row["left"]]
    chosen = "" if tried == cases else ", chosen at random"
    head = HEAD.format(tried=tried, all=cases, chosen=chosen, hit=hit, left=len(left))
    lines = [_row(*cell, len(row["left"])) for cell, row in zip(cells, rows, strict=True)]
    names = sorted({place for row in rows for place in row["positions"]})
    listed = "".join(f"- {name}\n" for name in left)
    lines.append(_row("all", places, cases, tried, hit, len(left)))
    return f"{head}{''.join(lines)}\n{listed}Positions: {_wrap(names)}\n"


def _wrap(names: list[str]) -> str:
    return "\n".join(textwrap.wrap(", ".join(names) + ".", 110, break_on_hyphens=False))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(page(sorted((json.loads(line) for line in lines), key=lambda row: str(row["action"]))))

"""The figures of a death sweep (NODEFALL_SWEEP_FIGURES) as the page docs/death-sweep.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = """# Death sweep: figures of the last full run

Each action runs on the lab and is hit by SIGKILL, SIGTERM, SIGINT, a full disk, a lost network or a lost terminal at a
position of its journal; then `nodefall undo` runs twice. Left behind: cases after which packet filter rules, units,
timers, files, power, taints, conditions, leases, config maps, namespaces, pods or workloads were others than before.
`.ci/nightly` tries all of them; `NODEFALL_SWEEP_POSITIONS="partition:planted:SIGKILL ..."` tries those that you name:

    NODEFALL_SWEEP_POSITIONS="poweroff:returned:lost-network" .venv/bin/python -m pytest -s tests/sweep

| action | positions | tried | hit | left behind |
|---|---|---|---|---|
"""


def page(rows: list[dict[str, Any]]) -> str:
    """In Markdown. ``hit``: the run came to the position; what it did not come to ends as any run does."""
    lines = [_row(r["action"], len(r["positions"]), r["tried"], r["hit"], len(r["left"])) for r in rows]
    sums = [sum(r[key] for r in rows) for key in ("tried", "hit")]
    total = _row("all", sum(len(r["positions"]) for r in rows), *sums, sum(len(r["left"]) for r in rows))
    left = "".join(f"- {name}\n" for row in rows for name in row["left"])
    places = sorted({place for row in rows for place in row["positions"]})
    return f"{HEAD}{''.join(lines)}{total}\n{left}Positions: {', '.join(places)}.\n"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    told = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(page(sorted((json.loads(line) for line in told), key=lambda row: str(row["action"]))))

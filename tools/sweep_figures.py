"""Writes docs/death-sweep.md from the figures of a death sweep (NODEFALL_SWEEP_FIGURES)."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.kit.deaths import DEATHS  # no package is installed with it

HEAD = """# Death sweep: figures of the last run

Each action runs on the lab and is hit by one death at one position of its journal. Some runs are killed, and their undo
is killed, too, at a position of the undo (SIGKILL twice). Then `nodefall undo` runs twice. A case left something behind
if packet filter rules, units, timers, files, power, taints, conditions, leases, config maps, namespaces, pods or
workloads differ from those before the run, or if the second undo changed anything; on Windows services, firewall rules,
scheduled tasks, registry, clock, pending shutdowns and open WinRM shells. The lock of a run that was killed without a
pending undo does not count: the next run takes it over. Further conditions:

- Network: the run waits 20 s for proofs instead of 3 and 5 min.
- ConfigMap: the undo uses the journal on disk. Names of other nodes, objects or runs must not be in its output, and the
  ConfigMap must be gone. Only positions at which the run has a ConfigMap.
- Lease: the run notices the loss, fires no operation after that, waits for the lock, undoes and exits with 2. It reads
  the Lease every 0.1 s instead of 1 s; the Lease of the other holder lasts 1 s.
- SIGSTOP: the process is really stopped, but for 0.1 s instead of 60 s. Meanwhile 60 s pass in the lab; then the
  process reads its clocks (boot time, monotonic, wall) 60 s later. Time-outs in the kernel do not see that;
  `NODEFALL_SWEEP_STOP=60` really stops for 60 s. With another holder, no operation may be fired after SIGCONT.
- Clocks: the run and its undo read the wall clock, in Python, one hour later or earlier. The run must end as without
  that.

{tried} cases were tried. In {hit} of them the run reached the position; in the others it ended earlier. {left} left
something behind. A case took {cpu:.1f} CPU seconds, the lab included.
{partial}

`action@winrm` and `action@ssh` are Windows forms, on a Windows node reached over WinRM (HTTPS) or over SSH;
`action@pod` is an action on a Linux node reached over transport pod.

`.ci/nightly` tries all of them and prints this page. `NODEFALL_SWEEP_ACTIONS` selects actions; those that are in the
file that `NODEFALL_SWEEP_FIGURES` names are skipped, so a sweep can be continued and divided.
`NODEFALL_SWEEP_POSITIONS` selects cases:

    NODEFALL_SWEEP_POSITIONS="partition:planted:SIGKILL reboot@ssh:returned:stopped-stolen" \\
      .venv/bin/python -m pytest -s tests/sweep

"""
TWICE = {"SIGKILL twice": "the run ends at once when its operation has returned, and so does its undo"}
KEYS = ("tried", "hit", "cpu")
# By what follows the action's name.
HOSTS = {"": "Linux, SSH", "pod": "Linux, pods", "winrm": "Windows, WinRM", "ssh": "Windows, SSH"}


def page(rows: list[dict[str, Any]]) -> str:
    """The page. A row: action, positions, deaths (by name: tried, hit, CPU seconds), left (names of cases)."""
    kinds = {name: death.what for name, death in DEATHS.items()} | TWICE
    left = [name for row in rows for name in row["left"]]
    tried, hit, cpu = (sum(_count(row, death, key) for row in rows for death in kinds) for key in KEYS)
    cpu /= max(tried, 1)
    head = HEAD.format(tried=f"{int(tried):,}", hit=f"{int(hit):,}", left=len(left), cpu=cpu, partial=_partial(rows))
    return "".join(
        [
            head,
            _by_hosts(rows, list(kinds)),
            "\n",
            _by_death(rows, kinds, left),
            "\nCases tried, by action and death:\n\n",
            _by_action(rows, list(kinds)),
            "\n",
            *(f"- {name}\n" for name in left),
            f"Positions: {_wrap(sorted({place for row in rows for place in row['positions']}))}\n",
        ]
    )


def _partial(rows: list[dict[str, Any]]) -> str:
    """Which rows lack cases: of these deaths every position of a journal is to be tried."""
    anywhere = [name for name, death in DEATHS.items() if not death.needs_replica]
    lacking = [row for row in rows if any(_count(row, name, "tried") < len(row["positions"]) for name in anywhere)]
    if not lacking:
        return "No case was left out."
    return f"{len(lacking)} of {len(rows)} actions and forms were swept in part: the last table has what was tried."


def _by_hosts(rows: list[dict[str, Any]], kinds: list[str]) -> str:
    lines = [_row("hosts", "actions", "tried", "hit", "left behind"), _row(*["---"] * 5)]
    for transport, hosts in HOSTS.items():
        some = [row for row in rows if row["action"].partition("@")[2] == transport]
        if some:
            tried, hit = (int(sum(_count(row, death, key) for row in some for death in kinds)) for key in KEYS[:2])
            lines.append(_row(hosts, len(some), tried, hit, sum(len(row["left"]) for row in some)))
    return "".join(lines)


def _by_death(rows: list[dict[str, Any]], kinds: dict[str, str], left: list[str]) -> str:
    lines = [_row("death", "what is done", "tried", "hit", "left behind", "CPU seconds a case"), _row(*["---"] * 6)]
    for death, what in kinds.items():
        tried, hit, cpu = (sum(_count(row, death, key) for row in rows) for key in KEYS)
        behind = sum(_death_of(name) == death for name in left)
        lines.append(_row(death, what, int(tried), int(hit), behind, f"{cpu / max(tried, 1):.1f}"))
    return "".join(lines)


def _by_action(rows: list[dict[str, Any]], kinds: list[str]) -> str:
    lines = [_row("action", "positions", *kinds, "left behind"), _row(*["---"] * (len(kinds) + 3))]
    for row in rows:
        counts = (int(_count(row, death, "tried")) for death in kinds)
        lines.append(_row(row["action"], len(row["positions"]), *counts, len(row["left"])))
    totals = (int(sum(_count(row, death, "tried") for row in rows)) for death in kinds)
    places, left = (sum(len(row[key]) for row in rows) for key in ("positions", "left"))
    return "".join([*lines, _row("all", places, *totals, left)])


def _count(row: dict[str, Any], death: str, key: str) -> float:
    return float(row["deaths"].get(death, {}).get(key, 0))


def _death_of(name: str) -> str:
    """Of ``action:position:death``."""
    _, position, death = name.split(":")
    return "SIGKILL twice" if "+" in position else death


def _wrap(names: list[str]) -> str:
    return "\n".join(textwrap.wrap(", ".join(names) + ".", 110, break_on_hyphens=False))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(page(sorted((json.loads(line) for line in lines), key=lambda row: str(row["action"]))))

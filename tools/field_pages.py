"""Write docs/experiment.md, docs/inventory.md and docs/gameday-fields.md from the models of the documents.

Run `python tools/field_pages.py` after a change of them; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import chaos.machines  # noqa: F401 - the drivers are part of the inventory's model
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.documents.reference import FieldRow, fields_of
from chaos.gameday.document import GameDay
from chaos.gameday.fleet_document import Fleet

DOCS = Path(__file__).parents[1] / "docs"
_COMMENT = "<!-- Written by tools/field_pages.py from the models. -->\n\n"
_PATHS = (
    "In a path, NAME is a name that you choose, and [] an item of a list. `nodefall explain PATH` prints a field.\n"
)
_PAGES: dict[str, tuple[str, tuple[type[Experiment | Inventory | GameDay | Fleet], ...]]] = {
    "experiment.md": (
        """# The experiment file

An experiment says what fails, and what must hold. This one says: when the node of a database loses power, a replica on
another node is ready within 90 s, and two of three web pods are available all the time.

```yaml
apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: database-node-lost}
spec:
  title: A database survives the loss of its node
  workload: {manifests: [shop.yaml]}        # created for the run, removed after it
  targets:
    victim: {role: worker, runs: workload}  # one node that runs a pod of the workload, drawn by a seed
  steadyState:                              # checked before anything is touched
    - {assert: nodes-ready, with: {nodes: all}}
    - {assert: workload-available, with: {namespace: workload}}
  method:
    - {name: cut, action: power-cut, target: victim}
    - {name: power-on, action: power-on, target: victim, after: cut + 5m}
  hypothesis:
    - name: each database pod of the node has a ready replacement on another node
      assert: pods-rescheduled
      with: {node: victim, namespace: workload, labels: {app: db}, at: cut}
      after: cut
      within: 90s
    - name: two web pods are ready all the time
      assert: pods
      with: {namespace: workload, labels: {app: web}, count: {ready: true, least: 2}}
      after: cut
      always: {until: power-on}
  recovery: {within: 5m}                    # the steady state is back after the undo
  maxDuration: 15m
```

`nodefall new` writes the skeleton of an experiment, `nodefall validate FILE` checks one without a cluster, and
`nodefall plan FILE -i INVENTORY` shows what it would send. Actions are in [actions.md](actions.md), assertions and time
words in [assertions.md](assertions.md), and what a verdict means is in [verdicts.md](verdicts.md).

## Fields
""",
        (Experiment,),
    ),
    "inventory.md": (
        """# The inventory file

An inventory says which cluster the faults are for, how its hosts are reached, and what is never touched.
`nodefall init` writes one; [init.md](init.md) has an example of each platform.

## Fields
""",
        (Inventory,),
    ),
    "gameday-fields.md": (
        """# The files of game days and fleets

[gameday.md](gameday.md) explains game days. These are all fields of their files.
""",
        (GameDay, Fleet),
    ),
}


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    return {name: "\n".join([_COMMENT + head, _PATHS, *_sections(models)]) for name, (head, models) in _PAGES.items()}


def _sections(models: Iterable[type[Experiment | Inventory | GameDay | Fleet]]) -> Iterator[str]:
    models = tuple(models)
    for model in models:
        if len(models) > 1:
            yield f"## {model.__name__}\n"
        yield "| field | what it is | type | default |"
        yield "|---|---|---|---|"
        yield from map(_row, fields_of(model))
        yield ""


def _row(row: FieldRow) -> str:
    default = "**required**" if row.default is None else "" if row.default == "none" else f"`{row.default}`"
    example = f"; as `{row.examples[0]}`" if row.examples else ""
    return f"| `{row.path}` | {_cell(row.description)}{_cell(example)} | {_cell(row.type)} | {_cell(default)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Writes experiments/README.md from the experiments' annotations.

`python tools/experiments_readme.py` after a change of an experiment; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from chaos.lab.breakages import BREAKAGES

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
STATEMENTS = EXPERIMENTS / "statements.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PREFIX = "nodefall.dev/"
REQUIRED = ("documentation", "sentence", "verdict", "evidence", "lab", "breakages")
OPTIONAL = ("really", "undecided-by")
VERDICTS = ("held", "aborted")
FAMILIES = {
    "graceful-shutdown": "Graceful shutdown",
    "cancelled-shutdown": "Cancelled shutdown",
    "non-graceful-shutdown": "Non-graceful shutdown",
    "nodes": "Nodes",
    "taints": "Taints",
    "disruptions": "Disruptions",
    "statefulset": "StatefulSet",
    "windows": "Windows nodes",
}
HEAD = """<!-- Written by tools/experiments_readme.py from the experiments' annotations. -->

# Experiments

Each file tests statements of the Kubernetes documentation: [the map](../docs/statements.md) has all of them, by page.
The experiments run on the lab with the inventory in the table:

    nodefall run experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml

(`nodefall rehearse experiments` runs all, each on the lab in the table, and compares their verdicts)
and on your cluster with your inventory (see hosts/example.yaml); `requires` refuses an experiment that the kubelets are
not configured for, and `kubernetes` one that is not true for the version. Their workloads have three replicas of
everything, spread over the nodes. With `runs: workload` a target always has pods of it: on a cluster with more than
three workers, node affinity confines the pods to the target and two other nodes, which the plan names. PriorityClasses
of a workload are created for the run and removed after it; if the cluster already has a class of that name, the class
is not changed and the run ends.

The verdict is that of the lab, and of a cluster that behaves like Kubernetes v1.36. "Violated as known" means that a
statement of the documentation is known not to hold; the next column has the actual behaviour. "Aborted" means that
nodefall stops the run. Under evidence, recordings are those of a real cluster in tests/recordings; paths are source
files of kubernetes/kubernetes.
"""
BREAKAGES_HEAD = """
## Which breakages they detect

`nodefall lab up --breakage ID` adds a deliberate defect to the lab. The verdict of these experiments changes from held
to violated. The verdict of the others does not change. (With heartbeats-ignored no node stays
Ready, and the abort condition ends every other run of more than a minute.) "Undecided": the run cannot be finished or
judged, and is inconclusive. Some breakages cannot be detected by any experiment.
"""


@dataclass(frozen=True, slots=True)
class BundledExperiment:
    """A bundled experiment with its annotations."""

    path: Path
    family: str
    notes: dict[str, str]
    comment: str
    known: int  # expectations that are known to be violated

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def breakages(self) -> tuple[str, ...]:
        """Breakages that change its verdict."""
        return self._listed("breakages")

    @property
    def undecided_by(self) -> tuple[str, ...]:
        """Breakages with which it is inconclusive, as a step cannot be done, or evidence is missing."""
        return self._listed("undecided-by")

    def _listed(self, note: str) -> tuple[str, ...]:
        return tuple(item.strip() for item in self.notes.get(note, "").split(",") if item.strip())


def bundled_experiments() -> list[BundledExperiment]:
    """All experiments, by name."""
    return [_read(path) for path in sorted(EXPERIMENTS.glob("*.yaml")) if path != STATEMENTS]


def _read(path: Path) -> BundledExperiment:
    text = path.read_text(encoding="utf-8")
    document = yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe one
    metadata = document["metadata"]
    known = sum("known" in item for item in document["spec"]["hypothesis"])
    notes = {key.removeprefix(PREFIX): value for key, value in metadata.get("annotations", {}).items()}
    return BundledExperiment(path, metadata["labels"]["family"], notes, text.splitlines()[0], known)


def page() -> str:
    """The whole page."""
    found = bundled_experiments()
    return "\n".join([HEAD, *_families(found), BREAKAGES_HEAD, *_breakage_rows(found), ""])


def _families(found: list[BundledExperiment]) -> Iterator[str]:
    for family, title in FAMILIES.items():
        yield f"## {title}\n"
        yield "| statement of the documentation | experiment | verdict | actual behaviour | evidence |"
        yield "|---|---|---|---|---|"
        yield from (_row(item) for item in found if item.family == family)
        yield ""


def _row(item: BundledExperiment) -> str:
    notes = item.notes
    lab, known = notes["lab"], f", {item.known} violated as known" if item.known else ""
    cells = [
        f"[{_cell(notes['sentence'])}]({notes['documentation']})",
        f"[{item.name}]({item.path.name})",
        f"{notes['verdict']}{known} ([{lab.removesuffix('.yaml')}](../hosts/{lab}))",
        _cell(notes.get("really", "as documented")),
        _cell(notes["evidence"]),
    ]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[").replace("<", "&lt;")


def _breakage_rows(found: list[BundledExperiment]) -> Iterator[str]:
    yield "| breakage | effect | detected by |"
    yield "|---|---|---|"
    for breakage in BREAKAGES.values():
        names = [f"[{item.name}]({item.path.name})" for item in found if breakage.id in item.breakages]
        names += [f"[{item.name}]({item.path.name}) (undecided)" for item in found if breakage.id in item.undecided_by]
        detected_by = ", ".join(names) or f"none: {breakage.unobservable_reason}"
        yield f"| {breakage.id} | {_cell(breakage.text)} | {detected_by} |"


if __name__ == "__main__":
    (EXPERIMENTS / "README.md").write_text(page(), encoding="utf-8")

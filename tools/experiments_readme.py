"""Writes experiments/README.md from the experiments' annotations.

`python tools/experiments_readme.py` after a change of an experiment; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from chaos.documents.bundled import read_summaries
from chaos.lab.breakages import BREAKAGES

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
STATEMENTS = EXPERIMENTS / "statements.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PREFIX = "nodefall.dev/"
REQUIRED = ("documentation", "sentence", "verdict", "evidence", "lab", "breakages")
OPTIONAL = ("really", "undecided-by", "question")
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

## Ten to start with

These experiments answer the questions that people ask about their own cluster. They bring their own workload, so none
of your applications has to be touched. To test your applications, write an experiment with `nodefall new`.

{questions}

Run one on the simulated cluster, then on yours (hosts/example.yaml shows an inventory with comments):

    nodefall run graceful-poweroff --inventory hosts/lab.yaml
    nodefall run graceful-poweroff --inventory hosts/staging.yaml

nodefall refuses an experiment if the kubelets are not configured for it (`requires`), or if its expectations are not
true for the version of the cluster (`kubernetes`). The workloads have three replicas of everything, spread over the
nodes. With `runs: workload`, a target always has pods of the workload. On a cluster with more than three workers, a
node affinity confines the pods to the target and two other nodes, which the plan names. The PriorityClasses of a
workload are created for the run and removed after it. If the cluster already has a class with that name, the class is
not changed and the run ends.

## The conformance set

All experiments test statements of the Kubernetes documentation: [the map](../docs/statements.md) lists the statements
by page. `nodefall rehearse experiments` runs all of them, each on the lab in the table, and compares the verdicts.

The verdict in the table is the verdict on the lab, and on a cluster that behaves like Kubernetes v1.36. "Violated as
known" means that a statement of the documentation is known to be wrong; the next column shows the actual behavior.
"Aborted" means that nodefall stops the run. In the last column, numbers are recordings of a real cluster in
tests/recordings, and paths are source files of kubernetes/kubernetes.
"""
BREAKAGES_HEAD = """
### Which breakages they detect

`nodefall lab up --breakage ID` adds a deliberate defect to the lab. The table shows the experiments whose verdict
changes from held to violated. All other verdicts stay the same. (With heartbeats-ignored, no node stays Ready, so the
abort condition ends every other run that takes more than a minute.) "Undecided" means that the run cannot be finished
or judged, and is inconclusive. No experiment can detect some of the breakages.
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
    return "\n".join(
        [HEAD.replace("{questions}", questions()), *_families(found), BREAKAGES_HEAD, *_breakage_rows(found), ""]
    )


def questions(prefix: str = "") -> str:
    """The table of the experiments to start with. ``prefix``: of the links."""
    rows = (f"| {question} | [{name}]({prefix}{name}.yaml) |" for name, question in _summaries()[0].items())
    return "\n".join(("| question | experiment |", "|---|---|", *rows))


def _summaries() -> tuple[dict[str, str], dict[str, str]]:
    return read_summaries(path for path in EXPERIMENTS.glob("*.yaml") if path != STATEMENTS)


def _families(found: list[BundledExperiment]) -> Iterator[str]:
    for family, title in FAMILIES.items():
        yield f"### {title}\n"
        yield "| statement of the documentation | experiment | verdict | actual behavior | evidence |"
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

"""Makes a failing pair small: objects, facts and metrics are left out as long as it fails."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.world import RESOURCES, Obj, write

NEVER_LEFT_OUT = {"meta", "action", "current", "blind", "nodes"}


@dataclass(slots=True)
class Failure:
    """A verdict that is the opposite of another one of the same expectation, and how to see it again."""

    recording: str
    rule: str
    expectation: Obj
    judged: str
    right: str
    because: str
    entries: list[Obj] = field(repr=False)
    original: list[Obj] = field(repr=False)
    experiment: Obj = field(repr=False)
    bound: dict[str, list[str]] = field(default_factory=dict, repr=False)
    fails: Callable[[list[Obj], list[Obj]], bool] | None = field(default=None, repr=False)

    def command(self, folder: Path | None = None) -> str:
        """Write the files, and say how the judge is called."""
        folder = folder or Path(tempfile.mkdtemp(prefix="oracle-"))
        write(folder / "recording.jsonl.gz", self.entries)
        (folder / "experiment.yaml").write_text(json.dumps(self.experiment, indent=1), encoding="utf-8")
        binds = " ".join(f"--bind {name}={value}" for name, values in self.bound.items() for value in values)
        return f"nodefall judge {folder}/recording.jsonl.gz {folder}/experiment.yaml {binds}"

    def text(self) -> str:
        """What failed, in a few lines."""
        hypothesis = self.experiment["spec"]["hypothesis"]
        parts = f"\n  of {hypothesis[:-1]}" if "order" in self.expectation else ""
        return (
            f"{self.recording}, {self.rule}: judge {self.judged}, right is {self.right}\n"
            f"  {self.expectation}\n  because: {self.because[:200]}{parts}"
        )


def group_of(entry: Obj) -> str | None:
    """What is left out as one; None: never left out."""
    if entry["kind"] in NEVER_LEFT_OUT:
        return None
    if entry["kind"] in RESOURCES:
        return f"{entry['kind']} {entry['object']['metadata'].get('uid')}"
    return f"{entry['kind']} {entry.get('type')} {entry.get('node')}"


def shrunk(failure: Failure, tries: int = 120) -> Failure:
    """The same failure with less of the recording: halves, quarters... are left out while it still fails."""
    groups = sorted({g for e in failure.entries if (g := group_of(e))})
    size = len(groups) // 2
    while failure.fails and size and tries:
        at = 0
        while at < len(groups) and tries:
            tries -= 1
            rest = {*groups[:at], *groups[at + size :]}
            entries = [e for e in failure.entries if group_of(e) is None or group_of(e) in rest]
            original = [e for e in failure.original if group_of(e) is None or group_of(e) in rest]
            if failure.fails(entries, original):
                failure.entries, failure.original, groups = entries, original, sorted(rest)
            else:
                at += size
        size //= 2
    return failure

"""The shipped experiments as their files tell, and how one is run on the lab that it names."""

from __future__ import annotations

import json
import runpy
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from processes import EXPERIMENTS, ROOT, nodefall, result_of

TOOL = runpy.run_path(str(ROOT / "tools" / "experiments_readme.py"))
SHELF = {item.name: item for item in TOOL["shipped"]()}
CODES = {"held": 0, "violated": 1, "aborted": 2}


def rights(name: str) -> list[dict[str, Any]]:
    """Exactly those that ``nodefall rbac`` prints for it, as the lab's authorizer knows them."""
    told = nodefall("rbac", EXPERIMENTS / f"{name}.yaml", "--json", cwd=ROOT)
    return [
        {"verbs": [right["verb"]], "apiGroups": [right["group"]], "resources": [right["resource"]]}
        | {"namespaces": [right["namespace"]] if right["namespace"] else []}
        | {"resourceNames": [right["name"]] if right["name"] else []}
        for right in json.loads(told.stdout)["rights"]
    ]


def run(name: str, cwd: Path, breakages: Sequence[str] = (), **lab: Any) -> tuple[int, dict[str, Any]]:
    """Exit code and result of ``nodefall run`` on the experiment's own lab with ``breakages``, and the least rights."""
    inventory = yaml.safe_load((ROOT / "hosts" / SHELF[name].notes["lab"]).read_text(encoding="utf-8"))
    inventory["lab"] |= {"breakages": list(breakages), "rights": rights(name), **lab}
    (cwd / "lab.json").write_text(json.dumps(inventory))
    done = nodefall("run", EXPERIMENTS / f"{name}.yaml", "-i", "lab.json", "--seed", "1", "--json", cwd=cwd)
    return done.returncode, result_of(done)


def part(items: Iterable[Any], count: int | None) -> list[Any]:
    """``count`` of them, seeded: the same in every process, and others when the list changes; all if None."""
    ordered = sorted(items, key=lambda item: (zlib.crc32(repr(item).encode()), repr(item)))
    return ordered if count is None else ordered[:count]

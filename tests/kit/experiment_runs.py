"""The shipped experiments as their files describe them, how one is run on its lab, and which breakages it notices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import yaml

from chaos.lab.breakages import BREAKAGES
from tests.kit.processes import EXPERIMENTS, ROOT, WALL, environment, nodefall, plugin_options, result_of
from tools.experiments_readme import bundled_experiments

BUNDLED = {item.name: item for item in bundled_experiments()}
IS_WHOLE = os.environ.get("NODEFALL_EXPERIMENTS") == "all"
OUTCOMES = {"held": "passed", "aborted": "error"}


def verdict_of(result: Mapping[str, Any]) -> str:
    """The status of a result, or that the run was aborted."""
    return "aborted" if result["headline"].startswith("aborted: ") else str(result["status"])


def rights(name: str) -> list[dict[str, Any]]:
    """Exactly those that ``nodefall rbac`` prints for it, as the lab's authorizer knows them."""
    return rights_of(EXPERIMENTS / f"{name}.yaml")


def rights_of(path: Path) -> list[dict[str, Any]]:
    """Those of an experiment or a game day."""
    done = nodefall("rbac", path, "--json", cwd=ROOT)
    return [as_rule(right) for right in json.loads(done.stdout)["permissions"]]


def as_rule(right: Mapping[str, str]) -> dict[str, Any]:
    """A permission as the lab's authorizer knows it."""
    if right["resource"].startswith("/"):
        return {"verbs": [right["verb"]], "nonResourceURLs": [right["resource"]]}
    return (
        {"verbs": [right["verb"]], "apiGroups": [right["group"]], "resources": [right["resource"]]}
        | {"namespaces": [right["namespace"]] if right["namespace"] else []}
        | {"resourceNames": [right["name"]] if right["name"] else []}
    )


def _write_lab(name: str, cwd: Path, breakages: Sequence[str]) -> None:
    """The experiment's own lab with ``breakages``, and the least rights."""
    inventory = yaml.safe_load((ROOT / "hosts" / BUNDLED[name].notes["lab"]).read_text(encoding="utf-8"))
    inventory["lab"] |= {"breakages": list(breakages), "rights": rights(name)}
    (cwd / "lab.json").write_text(json.dumps(inventory))


def run(name: str, cwd: Path, breakages: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
    """Exit code and result of ``nodefall run``."""
    _write_lab(name, cwd, breakages)
    done = nodefall("run", EXPERIMENTS / f"{name}.yaml", "-i", "lab.json", "--seed", "1", "--json", cwd=cwd)
    return done.returncode, result_of(done)


def run_as_test(name: str, cwd: Path) -> tuple[str, dict[str, Any]]:
    """``passed``, ``failure`` or ``error`` under pytest with nodefall's plug-in, and the result."""
    _write_lab(name, cwd, ())
    options = ["--nodefall-inventory", "lab.json", "--nodefall-seed", "1", "--junitxml", "junit.xml"]
    alone = ["-c", os.devnull, "-p", "no:cacheprovider", *plugin_options()]
    command = [sys.executable, "-m", "pytest", *alone, *options, str(EXPERIMENTS / f"{name}.yaml")]
    done = subprocess.run(
        command, cwd=cwd, env=environment(cwd), capture_output=True, text=True, timeout=WALL, check=False
    )
    cases = list(ET.parse(cwd / "junit.xml").iter("testcase"))  # noqa: S314 - our own
    assert len(cases) == 1, done.stdout
    outcome = next((child.tag for child in cases[0] if child.tag != "properties"), "passed")
    (path,) = cwd.glob(f"reports/{name}/*/result.json")
    return outcome, json.loads(path.read_text(encoding="utf-8"))


def part(items: Iterable[Any], count: int | None) -> list[Any]:
    """``count`` of them, seeded: the same in every process, and others when the list changes; all if None."""
    ordered = sorted(items, key=lambda item: (zlib.crc32(repr(item).encode()), repr(item)))
    return ordered if count is None else ordered[:count]


_GROUPS = 4  # neighbours, as X-late and X-early, are in different ones: they would undo each other
_APART = (  # these do together what none of them does alone
    ("taint-eviction-reordered", "delete-removes-running-pod"),
    ("taint-eviction-reordered", "pod-removal-early"),
    ("taint-eviction-reordered", "statefulset-replaced-before-removal"),
    ("unknown-early", "replicaset-replaces-unready"),
)
# No node stays Ready, and the abort condition ends whatever lasts a minute; and pods that a node rejects are made and
# bound again and again, as fast as the lab can.
_ALONE = ("heartbeats-ignored", "no-schedule-taint-missing", "no-schedule-taint-late", "replacement-late")
NOTICED = [(name, breakage) for name, item in BUNDLED.items() for breakage in item.breakages]
UNDECIDED = [(name, breakage) for name, item in BUNDLED.items() for breakage in item.undecided_by]


def is_noticed(name: str, status: str) -> bool:
    """Whether an experiment with this status has noticed what its lab does wrong."""
    wanted = BUNDLED[name].notes["verdict"]
    return status != wanted and (wanted != "held" or status == "violated")


def unnoticed() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each experiment with all other breakages, a quarter of them at once."""
    for name, item in BUNDLED.items():
        left = {*item.breakages, *item.undecided_by, *_ALONE}
        for group in _groups():
            yield name, tuple(b for b in group if b not in left)


def _groups() -> list[list[str]]:
    groups = [list(BREAKAGES)[group::_GROUPS] for group in range(_GROUPS)]
    for number, group in enumerate(groups):
        for one, other in _APART:
            if one in group and other in group:
                group.remove(other)
                groups[number - 1].append(other)
    return groups

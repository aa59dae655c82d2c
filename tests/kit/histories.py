"""Runs of shipped experiments on a lab that logs its history, also beside loops that make the machine busy.

The history of a lab is every state that its store commits, in order, with its simulated time. Left out is what differs
between any two labs or runs on one seed, and never decides what the cluster does: ports, keys, the process that runs,
the name of nodefall's Events, and nodefall's lock. resourceVersions are counted without those of the lock. Nor is the
lock renewed in the background, as that is in wall time: how soon a run has proven its observations complete, and with
that its end, depends on the resourceVersions in between.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.app import labs
from chaos.app.lab_spec import lab_spec
from chaos.app.run.experiment import RunRequest, always_confirm, run
from chaos.app.wiring.connect import connect_cluster, with_lab_cluster
from chaos.cluster import lease_lock
from chaos.cluster.replica import PREFIX
from chaos.core.inventory import Inventory
from chaos.core.lab_settings import Lab
from chaos.core.labels import LOCK_NAME
from chaos.engine.load import load
from chaos.engine.progress import NullProgress
from tests.kit.experiment_runs import BUNDLED
from tests.kit.processes import EXPERIMENTS, ROOT

_START, _SEED = 1_700_000_000.0, 1  # of the lab's time
_END = 60.0  # wall seconds in which a lab ends
_BUSY_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n for _ in range(10**6):\n  pass"


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """``verdicts`` by expectation; ``history``: one change a line. ``end``: when the run removed what was its own."""

    headline: str
    verdicts: dict[str, str]
    history: list[str]

    @property
    def end(self) -> float:
        return next((float(change[0]) for change in map(json.loads, self.history) if _is_removal(*change)), math.inf)

    def until(self, end: float) -> list[str]:
        """The changes before that time."""
        return [line for line in self.history if float(json.loads(line)[0]) < end]


def logged_run(name: str, directory: Path, speed: float = 20.0) -> LoggedRun:
    """Run a shipped experiment on its lab, on the same seed, with the same ID, from the same instant each time."""
    document = yaml.safe_load((ROOT / "hosts" / BUNDLED[name].notes["lab"]).read_text(encoding="utf-8"))
    requested = Inventory.model_validate(document)
    assert requested.lab
    request = RunRequest(load(EXPERIMENTS / f"{name}.yaml"), directory, always_confirm, _SEED, run_id=f"{name}-000000")
    log = directory / "history"
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(lease_lock, "RETRY_PERIOD", math.inf)
        facts = stack.enter_context(_lab(requested.lab, log, speed))
        inventory = with_lab_cluster(requested, labs.make_inventory(facts))
        result = run(request, stack.enter_context(connect_cluster(inventory)), NullProgress()).result
    verdicts = {verdict.name: str(verdict.status) for verdict in (*result.hypothesis, *result.recovery)}
    return LoggedRun(result.headline, verdicts, _history(log))


def _is_removal(_: str, kind: str, plural: str, obj: dict[str, Any]) -> bool:
    name, is_deleted = obj["metadata"]["name"], kind == "DELETED" or "deletionTimestamp" in obj["metadata"]
    return is_deleted and (plural == "namespaces" or (plural == "configmaps" and name.startswith(PREFIX)))


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Processes that only compute, as many as make each processor wait. They end with this process, too."""
    loops = [subprocess.Popen([sys.executable, "-c", _BUSY_LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def _lab(lab: Lab, log: Path, speed: float) -> Iterator[dict[str, Any]]:
    """The ready line of a lab process that logs to ``log``."""
    arguments = ["--careful", "--pace", f"{speed:g}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kit.logged_lab", str(log), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin
    assert process.stdout
    with process, process.stdin, process.stdout:
        process.stdin.write(json.dumps(lab_spec(lab, _SEED, _START)).encode() + b"\n")
        process.stdin.flush()
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.write(b"stop\n")
            process.stdin.flush()
            assert process.wait(_END) == 0


def _history(log: Path) -> list[str]:
    """The changes, with what differs in any two labs left out."""
    changes = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    changes = [change for change in changes if (change[2], change[3]["metadata"]["name"]) != ("leases", LOCK_NAME)]
    order = {change[3]["metadata"]["resourceVersion"]: str(number) for number, change in enumerate(changes, start=1)}
    for change in changes:
        obj = change[3]
        obj.get("status", {}).pop("daemonEndpoints", None)
        if change[2] == "configmaps" and obj["metadata"]["name"].startswith(PREFIX):
            obj["data"] = sorted(obj["data"])
        elif obj.get("reportingComponent") == "nodefall":
            obj["metadata"]["name"], obj["message"] = "", obj["message"].partition(", ")[2]
        for part in (obj["metadata"], obj.get("involvedObject", {})):
            if "resourceVersion" in part:
                part["resourceVersion"] = order.get(part["resourceVersion"], "unknown")
    return [json.dumps(change, sort_keys=True) for change in changes]

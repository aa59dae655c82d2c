"""Run directories as runs leave them, without runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from chaos import __version__
from chaos.core.action import FactCheck, Undo
from chaos.core.result import RESULT_VERSION, RunResult, StoredRun
from chaos.core.store.journal import Journal
from chaos.core.store.run_directory import EXPERIMENT, RESULT, RUN, RunInfo, save
from chaos.core.store.run_history import read_run
from chaos.core.verdict import Status, Verdict, worst

NOW = 1795232133.0
DAY = 86400.0
UID = "6f0c1a2b-0000-4000-8000-000000000000"


def within(seconds: float, bound: float = 40.0, name: str = "pods end", operator: str = "within") -> Verdict:
    """A verdict on a ``within``: held after ``seconds``; violated if they are more than its ``bound``."""
    status = Status.HELD if seconds <= bound else Status.VIOLATED
    return Verdict(name, "pods", status, "because", "", "", min(seconds, bound), 0.0, bound, operator=operator)


def result_of(*hypothesis: Verdict, started: float = NOW, **changes: Any) -> RunResult:
    """A result of a run on a real cluster that took 100 s."""
    status = worst(verdict.status for verdict in hypothesis)
    result = RunResult(
        version=RESULT_VERSION,
        run=f"e-{int(started)}",
        experiment="e",
        title="A title",
        status=status,
        exit_code={Status.HELD: 0, Status.VIOLATED: 1}.get(status, 2),
        headline=f"{status}: a headline",
        simulated=False,
        kubernetes="v1.36.2",
        cluster_uid=UID,
        started=started,
        ended=started + 100,
        targets={"victim": ("worker-1",)},
        steps=(),
        steady_state=(),
        hypothesis=hypothesis,
    )
    return msgspec.structs.replace(result, **changes)


def store(reports: Path, result: RunResult | None, **info: Any) -> Path:
    """Write the directory of a run: its info, experiment, journal without a pending undo, and result, if it has one."""
    started = result.started if result else info.get("started", NOW)
    experiment = result.experiment if result else "e"
    stamp = datetime.fromtimestamp(started, UTC).strftime("%Y%m%dT%H%M%SZ")
    directory = reports / experiment / stamp
    directory.mkdir(parents=True)
    inventory = {"metadata": {"name": "staging"}, "hosts": {"worker-1": {}, "worker-2": {}}}
    known = {"run": f"e-{int(started)}", "experiment": experiment, "started": started, "inventory": inventory}
    save(directory, RUN, msgspec.convert({**known, "cluster_uid": UID, "nodefall": __version__, **info}, RunInfo))
    (directory / EXPERIMENT).write_text("kind: Experiment\n")
    with Journal(directory) as journal:
        entry = journal.record_intent("s", "cordon", "worker-1", Undo(proof=(FactCheck("node-ready", True),)), started)
        journal.mark_undone(entry, "it is schedulable")
    if result:
        save(directory, RESULT, result)
    return directory


def stored(reports: Path, *results: RunResult) -> list[StoredRun]:
    """The runs of ``results``, read again; the last one given is the newest, and first in the list."""
    return [read_run(store(reports, result), frozenset()) for result in results][::-1]

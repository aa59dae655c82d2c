"""Recordings of runs of nodefall on real clusters, judged by the bundled experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from chaos.core.experiment import Experiment
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult, StepResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.verdicts.judge.context import Options
from chaos.verdicts.judge.judge import judge
from tests.kit.story import RECORDINGS, manifests, plugin_registry, shipped


def run_lines(name: str) -> list[RecordingEntry]:
    """Entries of ``tests/recordings/runs/NAME.jsonl.gz``."""
    return list(read_recording(RECORDINGS / "runs" / f"{name}.jsonl.gz"))


def judged_run(lines: Iterable[RecordingEntry], experiment: str | Experiment, **options: Any) -> RunResult:
    """The lines judged by a bundled experiment, or by a given one."""
    made = shipped(experiment) if isinstance(experiment, str) else experiment
    return judge(made, build_timeline(lines), plugin_registry(), Options(manifests=manifests(made), **options))


def step_of(result: RunResult, name: str) -> StepResult:
    return next(step for step in result.steps if step.step == name)


def with_object(line: RecordingEntry, change: Callable[[Any], Any]) -> RecordingEntry:
    """The entry with ``change`` of its object."""
    return msgspec.structs.replace(
        line, object=msgspec.Raw(msgspec.json.encode(change(msgspec.json.decode(line.object))))
    )


def is_action(line: RecordingEntry, action: str, phase: str) -> bool:
    return (line.kind, line.type) == ("action", action) and msgspec.json.decode(line.object)["phase"] == phase

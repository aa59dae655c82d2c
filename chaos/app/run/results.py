"""Judges recordings and runs, and writes what a run leaves: its directory, and its reports at the end."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import structs

from chaos import __version__
from chaos.core.clock import SystemClock
from chaos.core.duration import known_fact, parse_duration
from chaos.core.errors import Exit, NodefallError, Refused, UsageError, bad_input
from chaos.core.files import write_private
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan, plan_document
from chaos.core.redaction import redact, redact_bytes
from chaos.core.result import REFUSED, RESULT_VERSION, RunResult
from chaos.core.store import run_directory
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.store.recording_writer import RecordingWriter
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.engine.connection import ClusterConnection, cluster_identity
from chaos.engine.load import LoadedExperiment
from chaos.reports.run.renderer import load_renderers
from chaos.verdicts.judge.context import WORKLOAD, Options
from chaos.verdicts.judge.judge import judge

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The verdicts of a run, and the timeline they were derived from."""

    result: RunResult
    timeline: Timeline

    def write(self, directory: Path) -> None:
        """Write the result and all reports. Raises OSError."""
        run_directory.save(directory, run_directory.RESULT, self.result)
        for renderer in load_renderers().values():
            text = redact(renderer.render(self.result, self.timeline))
            write_private(directory / renderer.file, text.encode())


@dataclass(frozen=True, slots=True)
class JudgeOverrides:
    """Values that replace or complete those of the recording: nodes by target, recorded action by step, facts."""

    bind: Mapping[str, Sequence[str]]
    steps: Mapping[str, str]
    facts: Mapping[str, str]


def judge_recording(recording: Path, loaded: LoadedExperiment, overrides: JudgeOverrides) -> JudgedRun:
    """Judge ``recording``, a file or a run directory. Raises BadInput, and UsageError for unknown names."""
    options = _options(loaded, overrides)
    timeline = build_timeline(read_recording(_file(recording)))
    _check_nodes(options, timeline)
    return JudgedRun(judge(loaded.experiment, timeline, loaded.registry, options), timeline)


def stored_experiment(directory: Path) -> Path:
    """The experiment in a run directory. Raises UsageError."""
    path = directory / run_directory.EXPERIMENT
    if not path.is_file():
        raise UsageError(
            f"{directory} has no {run_directory.EXPERIMENT}",
            hint="name the experiment too, or give a run directory",
        )
    return path


def _file(path: Path) -> Path:
    """The recording itself, if ``path`` is a run directory. Raises BadInput if it has none."""
    if not path.is_dir():
        return path
    if not (path / run_directory.RECORDING).exists():
        raise bad_input(
            str(path), f"contains no {run_directory.RECORDING}", "give a recording (*.jsonl.gz) or a run directory"
        )
    return path / run_directory.RECORDING


def _options(loaded: LoadedExperiment, overrides: JudgeOverrides) -> Options:
    """The judge's options. Raises UsageError for names that the experiment does not have."""
    kinds = [(str(m.get("kind")), str((m.get("metadata") or {}).get("name"))) for m in loaded.manifests]
    spec = loaded.experiment.spec
    nodes = {_one_of("bind", "target", t, spec.targets): tuple(n) for t, n in overrides.bind.items() if t != WORKLOAD}
    names = [step.name for step in spec.method]
    steps = {_one_of("map", "step", step, names): action for step, action in overrides.steps.items()}
    facts = {}
    for name, value in overrides.facts.items():
        try:
            facts[known_fact(name)] = _value(value)
        except ValueError as error:
            raise UsageError(f"fact {name}={value}: {error}") from error
    namespace = next(reversed(overrides.bind.get(WORKLOAD, ("",))), "")
    return Options(bind=nodes, namespace=namespace, steps=steps, facts=facts, manifests=kinds)


def _value(text: str) -> str:
    """``text``, if it is a duration or a number of at least 0. Raises ValueError."""
    try:
        number = float(text)
    except ValueError:
        parse_duration(text)
        return text
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{text!r} is not 0 or a positive number; write a number, or a duration like 90s")
    return text


def _one_of(option: str, what: str, name: str, known: Iterable[str]) -> str:
    """``name``, if it is ``known``. Raises UsageError with a suggestion."""
    names = list(known)
    if name in names:
        return name
    near = get_close_matches(name, names, 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    raise UsageError(f"{option}: unknown {what} {name!r}", hint=hint)


def _check_nodes(options: Options, timeline: Timeline) -> None:
    """Raises UsageError for a bound node that is not in the recording."""
    for target, nodes in options.bind.items():
        for node in nodes:
            if node not in timeline.nodes:
                _one_of(f"bind {target}={node}", "node", node, sorted(timeline.nodes))


@dataclass(frozen=True, slots=True)
class Run(JudgedRun):
    """A finished run and its directory."""

    directory: Path

    @property
    def report(self) -> Path:
        """Path of the HTML report."""
        return self.directory / "report.html"


def create_directory(
    reports: Path, loaded: LoadedExperiment, connection: ClusterConnection, planned: Plan, holder: str
) -> tuple[Path, RecordingWriter]:
    """The run directory with the inputs of undo: the inventory, the plan, the experiment. Raises Refused."""
    directory = run_directory.create(reports, planned.experiment, connection.clock.now())
    info = run_directory.RunInfo(
        planned.run,
        planned.experiment,
        planned.created,
        _as_document(connection.inventory),
        connection.lab_pid,
        connection.uid,
        holder,
        __version__,
        cluster_identity(connection),
    )
    try:
        run_directory.save(directory, run_directory.RUN, info)
        run_directory.save(directory, run_directory.PLAN, plan_document(planned))
        _save_experiment(directory, loaded)
        return directory, RecordingWriter(directory / run_directory.RECORDING)
    except OSError as error:
        raise Refused(f"cannot write {error.filename or directory}: {error.strerror}") from error


def _save_experiment(directory: Path, loaded: LoadedExperiment) -> None:
    """What ``load`` needs to load it again from here, without the files that it names. Raises OSError."""
    write_private(directory / run_directory.EXPERIMENT, loaded.document)
    if loaded.manifests:
        write_private(directory / run_directory.WORKLOAD, redact_bytes(loaded.workload))


def _as_document(inventory: Inventory) -> dict[str, Any]:
    return inventory.model_dump(mode="json", by_alias=True, exclude_none=True)


def report_refusal(
    error: Refused, reports: Path, loaded: LoadedExperiment, run: str, cluster: ClusterConnection | Inventory
) -> str:
    """Write the reports of a run that was refused before it had a directory: CI systems read them.

    ``cluster``: the inventory, if there is no connection. Returns a note that says where they are, or why not.
    """
    connection = cluster if isinstance(cluster, ClusterConnection) else None
    inventory = cluster if isinstance(cluster, Inventory) else cluster.inventory
    uid, identity = (connection.uid, cluster_identity(connection)) if connection else ("", "")
    now = (connection.clock if connection else SystemClock()).now()
    info = run_directory.RunInfo(
        run, loaded.experiment.metadata.name, now, _as_document(inventory), None, uid, "", __version__, identity
    )
    is_simulated = inventory.lab is not None or bool(inventory.cluster and inventory.cluster.simulated)
    result = _refused(error, loaded, info, is_simulated, connection.version if connection else "")
    try:
        directory = run_directory.create(reports, result.experiment, now)
        run_directory.save(directory, run_directory.RUN, info)
        _save_experiment(directory, loaded)
        refused = Run(result, Timeline(), directory)
        refused.write(directory)
    except (NodefallError, OSError) as failed:
        logger.warning("no report of the refusal: %s", failed)
        return f"no report of the refusal was written: {failed}"
    return f"report: {refused.report}"


def _refused(
    error: Refused, loaded: LoadedExperiment, info: run_directory.RunInfo, is_simulated: bool, kubernetes: str
) -> RunResult:
    """The result of a run that was refused before it had a plan."""
    return RunResult(
        version=RESULT_VERSION,
        run=info.run,
        experiment=info.experiment,
        title=loaded.experiment.spec.title,
        status=Status.INCONCLUSIVE,
        exit_code=int(error.code),
        headline=REFUSED + error.message,
        simulated=is_simulated,
        kubernetes=kubernetes,
        cluster_uid=info.cluster_uid,
        started=info.started,
        ended=info.started,
        targets={},
        steps=(),
        steady_state=(),
        hypothesis=(),
        notes=(f"hint: {error.hint}",) if error.hint else (),
        nodefall_version=info.nodefall,
    )


def close_recording(writer: RecordingWriter) -> OSError | None:
    """Close it; the error if that fails."""
    try:
        writer.close()
    except OSError as error:
        return error
    return None


def write_reports(run: Run, record: Path | None, failure: OSError | None) -> Run:
    """Write the reports. Whatever could not be written becomes a note, and the run then counts as inconclusive."""
    if failure:
        run = _with_note(run, f"the recording is incomplete: {failure}")
    try:
        run.write(run.directory)
    except OSError as error:
        run = _with_note(run, f"cannot write the report: {error}")
    if record:
        try:
            shutil.copyfile(run.directory / run_directory.RECORDING, record)
        except OSError as error:
            run = _with_note(run, f"--record: cannot copy the recording: {error}")
    return run


def _with_note(run: Run, note: str) -> Run:
    logger.error("%s", note)
    result = structs.replace(run.result, notes=(*run.result.notes, note))
    if result.exit_code == Exit.HELD:
        code, headline = int(Exit.INCONCLUSIVE), f"all expectations held, but {note}"
        result = structs.replace(result, exit_code=code, status=Status.INCONCLUSIVE, headline=headline)
        result = structs.replace(result, tally="", sentence="")
    return replace(run, result=result)

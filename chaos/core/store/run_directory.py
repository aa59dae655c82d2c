"""Run directories: ``reports/<experiment>/<UTC stamp>/``, one file per artefact."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from chaos.core.errors import BadInput, Refused, UsageError
from chaos.core.files import make_private_directory, private_opener, read_regular
from chaos.core.moments import Moment
from chaos.core.redaction import redact_json
from chaos.core.result import RunResult
from chaos.core.store.journal import NAME as JOURNAL
from chaos.core.trusted_files import refuse_link_of_others, refuse_untrusted_file

T = TypeVar("T")
RUN, PLAN, RESULT, EXPERIMENT = "run.json", "plan.json", "result.json", "experiment.yaml"
RECORDING = "recording.jsonl.gz"
WORKLOAD = "workload.yaml"  # the objects of the experiment's manifests


class RunInfo(Struct, frozen=True):
    """What undo needs to connect to the cluster. The inventory holds references to secrets, never secrets.

    ``cluster`` distinguishes the cluster from every other one: its UID, of a lab with a digest of its certificate
    authority, as labs of one seed share a UID. "" in runs of 0.1.0.
    """

    run: str
    experiment: str
    started: Moment
    inventory: dict[str, Any]
    lab_pid: int | None = None
    cluster_uid: str = ""
    by: str = ""  # login@machine/process
    nodefall: str = ""  # version
    cluster: str = ""


def create(root: Path, experiment: str, now: float) -> Path:
    """A new, empty run directory, readable by its owner only. Raises Refused where that is impossible or unsafe."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    for attempt in range(1, 1000):
        directory = root / experiment / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            make_private_directory(directory.parent, directory.name)
        except FileExistsError as error:
            if directory.parent.is_dir():
                continue
            raise _cannot_create(directory.parent, error) from error
        except OSError as error:
            raise _cannot_create(directory, error) from error
        _refuse_place_of_others(root, directory)
        return directory
    raise UsageError(f"{root / experiment}: too many runs of {stamp}")


def _refuse_place_of_others(root: Path, directory: Path) -> None:
    """Raises Refused where another user could replace the new, empty run directory, from which undo reads."""
    # No other user logs in to a pod, where what provides the volume chooses its mode.
    places = (directory.parent,) if "KUBERNETES_SERVICE_HOST" in os.environ else (root, directory.parent)
    try:
        for place in places:
            refuse_untrusted_file(place)
    except BadInput as error:
        directory.rmdir()
        problem = error.problems[0]
        hint = f"{problem.hint}, or choose another directory with --reports DIRECTORY"
        raise Refused(f"cannot create the run directory in {problem.file}: {problem.message}", hint=hint) from error


def _cannot_create(directory: Path, error: OSError) -> Refused:
    return Refused(
        f"cannot create the run directory {directory}: {error.strerror}", hint="choose another with --reports DIRECTORY"
    )


def find(root: Path, name: str) -> Path:
    """The directory of a run: a path, EXPERIMENT/STAMP, the run's ID, or EXPERIMENT or ``last`` for the newest.

    Raises UsageError, and BadInput for a directory to which a symbolic link of another user leads.
    """
    found = _find(root, name)
    for path in (found.parent, found):
        refuse_link_of_others(path)
    return found


def directories_by_id(root: Path, experiment: str) -> dict[str, Path]:
    """The undamaged directories of an experiment's runs, by the ID of the run."""
    found = {}
    for path in root.glob(f"{experiment}/*/{RUN}"):
        with suppress(UsageError):
            found[load(path.parent, RUN, RunInfo).run] = path.parent
    return found


def refuse_untrusted(directory: Path) -> None:
    """Raises BadInput if another user may choose what an undo of this run sends to machines."""
    for path in (
        directory.parent,
        directory,
        *(directory / name for name in (RUN, PLAN, JOURNAL, EXPERIMENT, WORKLOAD)),
    ):
        if os.path.lexists(path):
            refuse_untrusted_file(path)


def _find(root: Path, name: str) -> Path:
    for candidate in (Path(name), root / name):
        if (candidate / RUN).is_file() or (candidate / PLAN).is_file():  # either can be lost
            return candidate
    experiment = "*" if name == "last" else name
    one_name = Path(experiment).name == experiment and experiment not in ("", "..")
    runs = [path for path in root.glob(f"{experiment}/*/{RUN}") if has_begun(path.parent)] if one_name else []
    found = sorted(runs, key=lambda p: (p.parent.name, p.parent.stat().st_mtime_ns))
    found = found or [path for path in root.glob(f"*/*/{RUN}") if _has_id(path, name)]
    if not found:
        raise _no_run(root, name)
    return found[-1].parent


def stored_workload(experiment: Path) -> Path | None:
    """The file with the objects of the workload, if ``experiment`` is the experiment that a run has stored."""
    workload = experiment.with_name(WORKLOAD)
    is_stored = experiment.name == EXPERIMENT and experiment.with_name(RUN).is_file()
    return workload if is_stored and workload.is_file() else None


def has_begun(directory: Path) -> bool:
    """Whether the run had a plan: one that was refused before it has a result only, and is never the newest."""
    return not (directory / RESULT).is_file() or any((directory / name).is_file() for name in (PLAN, JOURNAL))


def _no_run(root: Path, name: str) -> UsageError:
    experiments = sorted({path.parent.parent.name for path in root.glob(f"*/*/{RUN}")})
    if not experiments:
        why = f"{root} has no runs yet" if root.is_dir() else f"there is no directory {root}"
        return UsageError(
            f"no run {name!r}: {why}", hint="run an experiment first, as nodefall demo, or give --reports DIRECTORY"
        )
    nearest = get_close_matches(name, experiments, 1)
    guess = f"did you mean {nearest[0]}? " if nearest else ""
    return UsageError(
        f"no run {name!r} in {root}", hint=f"{guess}give a run directory, EXPERIMENT/STAMP, a run's ID or last"
    )


def _has_id(path: Path, run: str) -> bool:
    try:
        return load(path.parent, RUN, RunInfo).run == run
    except UsageError:
        return False  # a damaged one is found by its path


def save(directory: Path, name: str, artefact: Any) -> None:
    """Write an artefact as indented JSON, on disk when this returns. Raises OSError."""
    data = msgspec.json.format(redact_json(msgspec.json.encode(artefact)), indent=2)
    with open(directory / name, "wb", opener=private_opener) as file:
        file.write(data + b"\n")
        file.flush()
        os.fsync(file.fileno())


def load(directory: Path, name: str, type_: type[T]) -> T:
    """Read an artefact. Raises UsageError if it is missing or invalid."""
    path = directory / name
    try:
        return msgspec.json.decode(read_regular(path), type=type_)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def load_result(directory: Path) -> RunResult:
    """Read result.json. Raises UsageError if it is missing or invalid."""
    return load(directory, RESULT, RunResult)

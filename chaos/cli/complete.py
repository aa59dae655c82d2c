"""Bundled experiments and inventories, and shell completion: plug-ins, documents, targets, runs and options."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from chaos.core.errors import NodefallError, UsageError
from chaos.core.files import bundled_path, open_regular, path_or_bundled

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def bundled_names() -> list[str]:
    """The names of the bundled experiments. The map of statements lies beside them."""
    return sorted({path.stem for path in bundled_path("experiments").glob("*.yaml")} - {"statements"})


def experiment_path(text: str) -> Path:
    """The file of an experiment. A path that exists has precedence over the name of a bundled experiment.

    Raises UsageError for a misspelled name. A path that does not exist is returned as it is.
    """
    if not _NAME.fullmatch(text) or os.path.lexists(text):
        return path_or_bundled(text)
    bundled = bundled_path(f"experiments/{text}.yaml")
    if bundled.is_file():
        return bundled
    if near := get_close_matches(text, bundled_names(), 1, 0.8):
        raise UsageError(f"no file and no bundled experiment {text!r}", hint=f"did you mean {near[0]!r}?")
    return path_or_bundled(text)


class DocumentPath(click.Path):
    """A file, or a bundled one: converts with :func:`chaos.core.files.path_or_bundled`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        return super().convert(path_or_bundled(value), param, ctx)


class ExperimentPath(DocumentPath):
    """Converts with :func:`experiment_path`."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        return super().convert(experiment_path(os.fspath(value)), param, ctx)


_HEAD_BYTES = 16_384  # the kind of a document is near its top
_MAX_ENTRIES = 1000  # of a directory
_MAX_LINES = 2000  # of a recording, which begins with the list of all Nodes
_SUFFIXES = (".yaml", ".yml", ".json")
_KIND = re.compile(rb"(?:^|[{,])\s*[\"']?kind[\"']?: *[\"']?(\w+)", re.MULTILINE)
DEFAULT_REPORTS = Path("reports")
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_MAX_SUBJECTS = 200


def complete_action(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Names of actions."""
    from chaos.engine.registry import load_registry

    actions = load_registry().actions
    return [CompletionItem(name, help=actions[name].summary) for name in actions if name.startswith(incomplete)]


def complete_assertion(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Names of assertions."""
    from chaos.engine.registry import load_registry

    assertions = load_registry().assertions
    return [CompletionItem(name, help=assertions[name].summary) for name in assertions if name.startswith(incomplete)]


def complete_explained(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of all that ``explain`` explains."""
    from chaos.cli.time_words import TIME_WORDS
    from chaos.core.duration import FACTS, POD_FACTS
    from chaos.engine.registry import load_facts, load_windows_facts

    summaries = {**FACTS, **POD_FACTS, **{word: each.summary for word, each in TIME_WORDS.items()}}
    summaries |= {name: fact.summary for name, fact in {**load_windows_facts(), **load_facts()}.items()}
    plugins = [*complete_action(ctx, param, incomplete), *complete_assertion(ctx, param, incomplete)]
    others = [
        CompletionItem(name, help=text) for name, text in sorted(summaries.items()) if name.startswith(incomplete)
    ]
    experiments = [CompletionItem(name, help="experiment") for name in bundled_names() if name.startswith(incomplete)]
    return [*plugins, *others, *experiments]


def complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """``TARGET=NODE`` for each target of the command's experiment, with the nodes of its recording."""
    recording, experiment = (*ctx.args, "", "")[:2]  # click leaves them there, as the option before has no value yet
    recording, experiment = ctx.params.get("recording") or recording, ctx.params.get("experiment") or experiment
    targets = _targets(str(experiment)) if experiment else []
    nodes = _recorded_nodes(Path(recording)) if recording else []
    found = [f"{target}={node}" for target in targets for node in nodes] or [f"{target}=" for target in targets]
    return [CompletionItem(text) for text in found if text.startswith(incomplete)]


def complete_context(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Contexts of the kubeconfig of ``--kubeconfig``, else of the environment or the home directory."""
    from chaos.app.init import context_names

    try:
        names, _ = context_names(str(ctx.params.get("kubeconfig") or ""))
    except NodefallError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_document(*kinds: str) -> Complete:
    """A completion of paths: files of these kinds, and the directories that lead to them; otherwise any path."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
        paths = list(_documents(incomplete, kinds))
        while len(paths) == 1 and paths[0].endswith("/"):  # a shell would add a space after it
            below = list(_documents(paths[0], kinds))
            if not below:
                break
            paths = below
        return [CompletionItem(path) for path in paths] or [CompletionItem(incomplete, type="file")]

    return complete


complete_inventory_file = complete_document("Inventory")
complete_game_day_file = complete_document("GameDay")
complete_any_document = complete_document("Experiment", "Inventory", "GameDay")


def complete_experiment_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files of experiments, and after the first letter the names of the bundled experiments."""

    names = [name for name in bundled_names() if incomplete and name.startswith(incomplete)]
    files = complete_document("Experiment")(ctx, param, incomplete)
    return [*files, *(CompletionItem(name, help="bundled experiment") for name in names)]


def _documents(incomplete: str, kinds: Iterable[str]) -> Iterator[str]:
    """Paths that begin with ``incomplete``: documents of the kinds, and directories with a slash."""
    folder, _, start = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(start)]
    for entry in _entries(Path(folder or ("/" if incomplete.startswith("/") else "."))):
        if not entry.name.startswith(start) or entry.name.startswith("."):
            continue
        if os.path.isdir(entry):  # False, and no error, where it may not be read
            yield f"{prefix}{entry.name}/"
        elif entry.name.endswith(_SUFFIXES) and os.path.isfile(entry) and _kind_of(entry) in kinds:
            yield f"{prefix}{entry.name}"


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for _, entry in zip(range(_MAX_ENTRIES), entries, strict=False))
    except OSError:
        return []


def _kind_of(path: Path) -> str:
    """The kind of a document by its text, "" if there is none. The file is not parsed: completion must be quick."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return ""
    found = _KIND.search(head)
    return found[1].decode() if found else ""


def _targets(experiment: str) -> list[str]:
    from chaos.documents.experiment import load_experiment
    from chaos.engine.registry import load_registry

    try:
        return list(load_experiment(experiment_path(experiment), load_registry()).spec.targets)
    except NodefallError:
        return []


def _recorded_nodes(recording: Path) -> list[str]:
    """Names of the nodes at the start of a recording or of the recording of a run."""
    from itertools import islice

    from chaos.core.store.recording import build_timeline, read_recording
    from chaos.core.store.run_directory import RECORDING

    path = recording / RECORDING if os.path.isdir(recording) else recording
    try:
        return sorted(build_timeline(islice(read_recording(path), _MAX_LINES)).nodes)
    except NodefallError:
        return []


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """``last``, experiments, and EXPERIMENT/STAMP once the experiment is typed; the newest first."""
    reports, (experiment, slash, _) = _reports_of(ctx), incomplete.partition("/")
    if slash:
        found = [f"{experiment}/{name}" for name in sorted(_directories(reports / experiment), reverse=True)]
    else:
        names = sorted(_directories(reports))
        found = ["last", *names, *(f"{name}/" for name in names)]
    return [name for name in found if name.startswith(incomplete)]


def complete_experiment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Names of experiments that have runs."""
    return [name for name in sorted(_directories(_reports_of(ctx))) if name.startswith(incomplete)]


def _reports_of(ctx: click.Context) -> Path:
    return Path(ctx.params.get("reports") or DEFAULT_REPORTS)


def _directories(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(directory) if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []


def complete_change(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """``KEY=`` with its syntax; behind it, workloads or nodes of the snapshot."""
    from chaos.cluster.snapshot.whatif.changes import CHANGES

    key, sign, _ = incomplete.partition("=")
    if not sign:
        return [
            CompletionItem(f"{kind.key}=", help=f"{kind.syntax}: {kind.summary}")
            for kind in CHANGES.values()
            if kind.key.startswith(incomplete)
        ]
    snapshot = ctx.params.get("snapshot")
    if key not in CHANGES or not snapshot:
        return []
    colon = ":" if ":" in CHANGES[key].syntax else ""
    found = [f"{key}={subject}{colon}" for subject in _subjects(key, Path(snapshot))]
    return [CompletionItem(text) for text in found if text.startswith(incomplete)][:_MAX_SUBJECTS]


def _subjects(key: str, snapshot: Path) -> list[str]:
    from chaos.cluster.snapshot.whatif.changes import CHANGES
    from chaos.rehearsal.copies import read_contents

    try:
        return CHANGES[key].subjects(read_contents(snapshot))
    except NodefallError:
        return []


def complete_lab(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """The names of the labs of this user, for shell completion."""
    from chaos.cli.lab_state import lab_names
    from chaos.core.errors import NodefallError

    try:
        return [CompletionItem(name) for name in lab_names() if name.startswith(incomplete)]
    except NodefallError:
        return []


def complete_format(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Formats of the report of a run."""
    from chaos.reports.run.renderer import load_renderers

    return [name for name in load_renderers() if name.startswith(incomplete)]


def complete_day_format(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Formats of the report of a game day."""
    from chaos.reports.day.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_day(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Game days that have reports, and GAMEDAY/DAY."""
    from chaos.core.store.day_directory import names

    return [name for name in names(_reports_of(ctx)) if name.startswith(incomplete)]

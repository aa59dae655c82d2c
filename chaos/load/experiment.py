"""Experiment files."""

from __future__ import annotations

from pathlib import Path

from chaos.load.checks import check_experiment
from chaos.load.document import expect_kind, read_document
from chaos.load.error_collector import Cursor, ErrorCollector
from chaos.load.pydantic_errors import check_model
from chaos.load.tree import MappingEntry, to_builtins
from chaos.model.experiment import Experiment
from chaos.model.registry import PluginRegistry


def load_stored_experiment(path: Path) -> Experiment:
    """The experiment that a run has stored, whose manifests are elsewhere. Raises BadInput."""
    root = read_document(path)
    expect_kind(path, root, "Experiment")
    errors = ErrorCollector(str(path))
    experiment = check_model(Experiment, root, to_builtins(root), errors)
    errors.raise_if_any()
    assert isinstance(experiment, Experiment)  # noqa: S101 - None only with a problem
    return experiment


def load_experiment(path: Path, registry: PluginRegistry) -> Experiment:
    """The experiment in ``path``. Raises BadInput with all problems, those of its manifests included."""
    root = read_document(path, "Experiment")
    expect_kind(path, root, "Experiment")
    errors = ErrorCollector(str(path))
    experiment = check_model(Experiment, root, to_builtins(root), errors)
    check_experiment(Cursor(errors, MappingEntry(root.mark, root)), registry, path.parent)
    errors.raise_if_any()
    assert isinstance(experiment, Experiment)  # noqa: S101 - None only with a problem
    return experiment

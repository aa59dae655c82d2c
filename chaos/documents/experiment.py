"""Experiment files."""

from __future__ import annotations

from pathlib import Path

from chaos.core.experiment import Experiment
from chaos.core.registry import PluginRegistry
from chaos.documents.checks import check_experiment
from chaos.documents.document import expect_kind, read_document
from chaos.documents.error_collector import Cursor, ErrorCollector
from chaos.documents.pydantic_errors import check_model
from chaos.documents.tree import MappingEntry, to_builtins


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
    return registry.bind(experiment)

"""Experiment files."""

from __future__ import annotations

from pathlib import Path

from chaos.load.checks import check_experiment
from chaos.load.cursor import Cursor, Problems
from chaos.load.document import expect_kind, read_document
from chaos.load.translate import check_model
from chaos.load.tree import Entry, plain
from chaos.model.catalogue import Catalogue
from chaos.model.experiment import Experiment


def load_experiment(path: Path, catalogue: Catalogue) -> Experiment:
    """The experiment in ``path``. Raises BadInput with all problems, those of its manifests included."""
    root = read_document(path)
    expect_kind(path, root, "Experiment")
    problems = Problems(str(path))
    experiment = check_model(Experiment, root, plain(root), problems)
    check_experiment(Cursor(problems, Entry(root.mark, root)), catalogue, path.parent)
    problems.check()
    assert isinstance(experiment, Experiment)  # noqa: S101 - None only with a problem
    return experiment

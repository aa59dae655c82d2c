"""The experiments and inventories of the distribution, and arguments that name an experiment."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path

import click

import chaos
from chaos.core.errors import UsageError

_PACKAGE = Path(chaos.__file__).parent
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def bundled_path(name: str) -> Path:
    """The path of a bundled file, as ``experiments/graceful-poweroff.yaml``."""
    packaged = _PACKAGE / "shipped" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name


def bundled_names() -> list[str]:
    """The names of the bundled experiments."""
    return sorted(path.stem for path in bundled_path("experiments").glob("*.yaml"))


def experiment_path(text: str) -> Path:
    """The file of an experiment. A path that exists has precedence over the name of a bundled experiment.

    Raises UsageError for a misspelled name. A path that does not exist is returned as it is.
    """
    if not _NAME.fullmatch(text) or os.path.lexists(text):
        return Path(text)
    bundled = bundled_path(f"experiments/{text}.yaml")
    if bundled.is_file():
        return bundled
    if near := get_close_matches(text, bundled_names(), 1, 0.8):
        raise UsageError(f"no file and no bundled experiment {text!r}", hint=f"did you mean {near[0]!r}?")
    return Path(text)


class ExperimentPath(click.Path):
    """Converts with :func:`experiment_path`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        return super().convert(experiment_path(os.fspath(value)), param, ctx)

"""Options that the commands share which rehearse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

seed_option = click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The first one; the others follow."
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes at a time. [default: one for each core]"
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress: print the result only.")


def snapshot_option(help_: str) -> _Decorator:
    """``--snapshot FILE``."""
    return click.option("--snapshot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=help_)


def out_option(help_: str) -> _Decorator:
    """``--out DIR``."""
    return click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help=help_)

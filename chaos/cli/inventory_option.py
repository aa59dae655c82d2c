"""The option that names an inventory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from chaos.cli.complete import complete_inventory_file

_F = TypeVar("_F", bound=Callable[..., Any])


def inventory_option(text: str, **settings: Any) -> Callable[[_F], _F]:
    """``--inventory`` and ``-i``, completed in a shell. ``text``: its help."""
    return click.option("--inventory", "-i", shell_complete=complete_inventory_file, help=text, **settings)

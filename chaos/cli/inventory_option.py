"""The option that names an inventory."""

from __future__ import annotations

from typing import Any

import click

from chaos.cli.complete import complete_inventory_file


def inventory_option(text: str, **settings: Any) -> Any:
    """``--inventory`` and ``-i``, completed in a shell. ``text``: its help."""
    return click.option("--inventory", "-i", shell_complete=complete_inventory_file, help=text, **settings)

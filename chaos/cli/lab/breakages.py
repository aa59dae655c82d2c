"""``nodefall lab breakages``."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from chaos.cli.lazy import examples

_EXAMPLES = examples("nodefall lab breakages", "nodefall lab up --breakage eviction-late --breakage pdb-ignored")


@click.command("breakages", epilog=_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def breakages(as_json: bool) -> None:
    """List the deliberate defects of the simulated cluster, with which experiments fail."""
    from chaos.lab.facade import BREAKAGES  # noqa: PLC0415 - slow

    if as_json:
        rows = [
            asdict(item) | {"unseen": item.unobservable_reason} for item in BREAKAGES.values()
        ]  # unseen: key of 0.1.0
        click.echo(json.dumps(rows, indent=2))
        return
    formatter = click.HelpFormatter(width=120, max_width=120)
    for rule in sorted({item.rule for item in BREAKAGES.values()}):
        with formatter.section(f"rule {rule}"):
            formatter.write_dl([(item.id, item.text) for item in BREAKAGES.values() if item.rule == rule], col_max=40)
    click.echo(formatter.getvalue(), nl=False)

"""``nodefall schema``."""

from __future__ import annotations

import json

import click

from chaos.cli.lazy import examples


@click.command(
    epilog=examples(
        "nodefall schema > nodefall.schema.json",
        "# first line of an experiment, for editors with the YAML language server:",
        "# yaml-language-server: $schema=nodefall.schema.json",
    )
)
def command() -> None:
    """Print one JSON Schema (draft 2020-12) for experiments, inventories, game days and fleets."""
    click.echo(schema_text(), nl=False)


def schema_text() -> str:
    """The text of docs/nodefall.schema.json."""
    from chaos.documents.schema import json_schema  # noqa: PLC0415
    from chaos.engine.registry import load_registry  # noqa: PLC0415 - slow

    return json.dumps(json_schema(load_registry()), indent=2, ensure_ascii=False) + "\n"

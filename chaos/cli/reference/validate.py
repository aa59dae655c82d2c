"""Checks of documents, and the schema of all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chaos.cli.output import print_document
from chaos.core.errors import BadInput, Exit, Problem, UsageError

if TYPE_CHECKING:
    from chaos.core.experiment import Experiment
    from chaos.core.inventory import Inventory
    from chaos.documents.statements import Statements
    from chaos.gameday.document import GameDay
    from chaos.gameday.fleet_document import Fleet

    _Document = Experiment | Inventory | GameDay | Fleet | Statements

_OWN = re.compile(rb"""^["']?apiVersion["']?:\s*["']?nodefall\.dev/""", re.MULTILINE)
_FIELDS = ("file", "line", "column", "message", "hint")


def validate(files: tuple[Path, ...], as_json: bool) -> int:
    """Check experiments, inventories, game days and fleets: all problems, each with its position and a suggestion.

    Of a directory, all its documents of nodefall. With an inventory of a lab among them, also whether a lab can run
    the workloads of the experiments.
    """
    documents = [(path, *_read(path)) for given in files for path in _documents(given)]
    on_lab = any(document is not None and getattr(document, "lab", None) for _, document, _ in documents)
    results: list[dict[str, Any]] = []
    for path, document, problems in documents:
        kind, name = (document.kind, document.metadata.name) if document else ("", "")
        found = [*problems, *(_lab_problems(path, document) if document and on_lab else ())]
        shown = [{field: getattr(problem, field) for field in _FIELDS} for problem in found]
        results.append(
            {"file": str(path), "kind": "" if found else kind, "name": "" if found else name, "problems": shown}
        )
    valid = not any(result["problems"] for result in results)
    if as_json:
        print_document({"valid": valid, "files": results})
    for result in results:
        for problem in result["problems"]:
            click.echo(f"error: {Problem(**problem)}", err=True)
        if not result["problems"] and not as_json:
            click.echo(f"{result['file']}: {result['kind']} {result['name']} is valid")
    return Exit.HELD if valid else Exit.USAGE


def _documents(path: Path) -> list[Path]:
    """The file, or the documents in a directory; on stderr, its other YAML files, such as manifests.

    Raises UsageError for a directory without any.
    """
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.rglob("*") if each.suffix in (".yaml", ".yml") and each.is_file())
    found = [each for each in files if _OWN.search(each.read_bytes())]
    if not found:
        raise UsageError(f"no experiment, inventory or game day in {path}", hint="give another directory, or a file")
    for other in sorted(set(files) - set(found)):
        click.echo(f"skipped: {other}: it has no apiVersion of nodefall", err=True)
    return found


def _read(path: Path) -> tuple[_Document | None, tuple[Problem, ...]]:
    try:
        return _load(path), ()
    except BadInput as error:
        return None, tuple(error.problems)


def _lab_problems(path: Path, document: _Document) -> list[Problem]:
    """What a lab would reject of an experiment's workload."""
    workload = document.spec.workload if document.kind == "Experiment" else None
    if workload is None:
        return []
    from chaos.documents.manifests import load_objects  # noqa: PLC0415
    from chaos.lab.facade import rejections  # noqa: PLC0415

    objects = load_objects(path.parent / name for name in workload.manifests)
    return [
        objects[index].problem(f"a lab rejects {objects[index].object['kind']}: {reason}").problems[0]
        for index, reason in rejections([located.object for located in objects])
    ]


def _load(path: Path) -> _Document:
    from chaos.documents.document import kind_of_document, read_document  # noqa: PLC0415 - slow

    kind = kind_of_document(path, read_document(path))
    if kind == "Inventory":
        from chaos.documents.inventory import load_inventory  # noqa: PLC0415

        return load_inventory(path)
    if kind == "Statements":
        from chaos.documents.statements import load_statements  # noqa: PLC0415

        return load_statements(path)
    from chaos.engine.registry import load_registry  # noqa: PLC0415

    if kind == "GameDay":
        from chaos.app.day.document import load_game_day  # noqa: PLC0415

        return load_game_day(path).document
    if kind == "Fleet":
        from chaos.app.fleet.loading import load_fleet  # noqa: PLC0415

        return load_fleet(path).document
    from chaos.documents.experiment import load_experiment  # noqa: PLC0415

    return load_experiment(path, load_registry())


def print_schema(kind: str | None, catalog: bool) -> None:
    """Print one JSON Schema (draft 2020-12): for all documents, or for a kind of output.

    ``catalog``: the entry of the documents for the catalog of SchemaStore instead. Raises UsageError.
    """
    if kind and catalog:
        raise UsageError("--catalog is for documents, and cannot be combined with KIND", hint="leave out one of them")
    if kind:
        from chaos.cli.reference.output_schemas import output_schema  # noqa: PLC0415 - slow

        print_document(output_schema(kind))
    elif catalog:
        from chaos.documents.schema import CATALOG_ENTRY  # noqa: PLC0415

        print_document(CATALOG_ENTRY)
    else:
        click.echo(schema_text(), nl=False)


def schema_text() -> str:
    """The text of docs/nodefall.schema.json."""
    from chaos.documents.schema import json_schema  # noqa: PLC0415
    from chaos.engine.registry import load_registry  # noqa: PLC0415 - slow

    return json.dumps(json_schema(load_registry()), indent=2, ensure_ascii=False) + "\n"

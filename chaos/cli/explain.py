"""``nodefall explain``."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from chaos.cli.lazy import examples

if TYPE_CHECKING:
    from pydantic import BaseModel

    from chaos.model.action import AnyAction
    from chaos.model.assertion import Assertion


@click.command(
    epilog=examples(
        "nodefall explain poweroff", "nodefall explain pods", "nodefall explain kubelet.shutdownGracePeriod"
    )
)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, as_json: bool) -> None:
    """Explain an action, an assertion or a fact: its effect, its parameters, an example."""
    entry = lookup(name)
    if as_json:
        click.echo(json.dumps(entry, indent=2))
        return
    click.echo(f"{entry['name']} ({entry['kind']}): {entry['summary']}")
    for parameter in entry.get("with", ()):
        click.echo(f"  {parameter['key']}: {parameter['type']}{parameter_details(parameter)}")
    for label in ("alias of", "needs", "undo", "proofs", "example"):
        if value := entry.get(label):
            click.echo(f"{label}: {value if isinstance(value, str) else '; '.join(value)}")


def parameter_details(parameter: dict[str, Any]) -> str:
    """``, required`` or the default of a parameter, and its description."""
    default = ", required" if parameter["required"] else f", default {json.dumps(parameter['default'])}"
    return default + (f" - {parameter['description']}" if parameter["description"] else "")


def lookup(name: str) -> dict[str, Any]:
    """The documentation of an action, an assertion or a fact, as JSON. Raises UsageError."""
    from chaos.app.registry import load_registry  # noqa: PLC0415 - slow
    from chaos.model.bound import FACTS, POD_FACTS  # noqa: PLC0415
    from chaos.model.errors import UsageError  # noqa: PLC0415

    found = load_registry()
    facts = {**FACTS, **POD_FACTS}
    if name in found.actions:
        action = found.actions[name]
        proofs = [proof.name + (" (weak)" if proof.weak else "") for proof in action.proofs]
        return {**_plugin("action", action), "undo": str(action.undo_kind), "proofs": proofs}
    if name in found.assertions:
        assertion = found.assertions[name]
        alias = {"alias of": expands} if (expands := getattr(assertion, "expands_to", "")) else {}
        return {**_plugin("assertion", assertion), **alias, "needs": assertion.needs}
    if name in facts:
        return {"kind": "fact", "name": name, "summary": facts[name]}
    near = get_close_matches(name, [*found.actions, *found.assertions, *facts], 1, 0.5)
    raise UsageError(f"unknown action, assertion or fact {name!r}", hint=f"did you mean {near[0]!r}?" if near else "")


def _plugin(kind: str, plugin: AnyAction | Assertion) -> dict[str, Any]:
    parameters = _parameters(plugin.params)
    return {
        "kind": kind,
        "name": plugin.name,
        "summary": plugin.summary,
        "with": parameters,
        "example": plugin.example.strip(),
    }


def _parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    schema = model.model_json_schema(by_alias=True)
    required, defs = schema.get("required", ()), schema.get("$defs", {})
    return [
        {
            "key": key,
            "type": _type(field, defs),
            "required": key in required,
            "default": field.get("default"),
            "description": field.get("description", ""),
        }
        for key, field in schema.get("properties", {}).items()
    ]


def _type(field: dict[str, Any], defs: dict[str, Any]) -> str:
    """The type of a JSON Schema in a few words; of a mapping with fixed keys, its keys."""
    options = field.get("anyOf") or field.get("oneOf")
    if options:
        return " or ".join(dict.fromkeys(_type(option, defs) for option in options if option.get("type") != "null"))
    if "enum" in field:
        return " | ".join(str(value) for value in field["enum"])
    if "const" in field:
        return str(field["const"])
    if "$ref" in field:
        return f"{{{', '.join(defs[str(field['$ref']).rsplit('/', 1)[-1]].get('properties', ()))}}}"
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), defs)}"
    kind = str(field.get("type", "anything"))
    return {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}.get(
        kind, kind
    )

"""JSON Schema of experiments, inventories, game days, fleets and statements, for editors.

It accepts what ``nodefall validate`` accepts, and refuses what that refuses for a type, a choice or a pattern. What
depends on two places of a file, as a step that an expectation names, only ``validate`` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from chaos.core.action import AnyAction
from chaos.core.assertion import Assertion
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.registry import PluginRegistry
from chaos.documents.statements import Statements
from chaos.gameday.document import GameDay
from chaos.gameday.fleet_document import Fleet

_DOCUMENTS: tuple[type[BaseModel], ...] = (Experiment, Inventory, GameDay, Fleet, Statements)
ID = "https://nodefall.dev/schema/v1alpha1.json"
CATALOG_ENTRY = {  # for SchemaStore's catalog.json
    "name": "nodefall",
    "description": "Experiments, inventories, game days and fleets of nodefall",
    "fileMatch": ["*.nodefall.yaml", "*.nodefall.yml"],
    "url": ID,
}
_WHOLE = r"^\s*[+-]?[0-9][0-9_]*(\.0*)?\s*$"
_NUMBER = r"^\s*[+-]?([0-9.][0-9_.]*([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(registry: PluginRegistry) -> dict[str, Any]:
    """One schema for all kinds; ``with`` has the parameters of its action or assertion."""
    plugins: list[AnyAction | Assertion] = [*registry.actions.values(), *registry.assertions.values()]
    models: list[type[BaseModel]] = list(dict.fromkeys([*_DOCUMENTS, *(p.params for p in plugins)]))
    given = [(model, "validation") for model in models]
    references, schema = models_json_schema(given, by_alias=True, schema_generator=_Generator)  # type: ignore[arg-type]
    refs = {model: reference for (model, _), reference in references.items()}
    definitions: dict[str, Any] = schema["$defs"]
    _constrain_with(definitions["Step"], "action", registry.actions, refs)
    _constrain_with(definitions["Expectation"], "assert", registry.assertions, refs)
    return {
        "$schema": DIALECT,
        "$id": ID,
        "title": "nodefall: experiments, inventories, game days, fleets and statements",
        "oneOf": [refs[document] for document in _DOCUMENTS],
        "$defs": definitions,
    }


class _Generator(GenerateJsonSchema):
    """Numbers may be quoted, as far as the models accept that; keys of mappings have the pattern that is given."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - of the base class
        """Never: an editor would show the title of each form of a value instead of the name of its field."""
        return False

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return _or_quoted(super().int_schema(schema), schema.get("strict"), _WHOLE)

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return _or_quoted(super().float_schema(schema), schema.get("strict"), _NUMBER)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found = super().dict_schema(schema)
        return found | ({"additionalProperties": False} if "patternProperties" in found else {})


def _or_quoted(number: JsonSchemaValue, is_strict: bool | None, pattern: str) -> JsonSchemaValue:
    return number if is_strict else {"anyOf": [number, {"type": "string", "pattern": pattern}]}


def _constrain_with(
    definition: dict[str, Any],
    key: str,
    plugins: Mapping[str, AnyAction] | Mapping[str, Assertion],
    refs: Mapping[Any, dict[str, Any]],
) -> None:
    """List the plug-ins in ``definition``, and constrain ``with`` by the selected one."""
    names = {"enum": list(plugins)}
    options = definition["properties"][key].get("anyOf")
    definition["properties"][key] |= {"anyOf": [names, *options[1:]]} if options else names
    definition["allOf"] = [
        {
            "if": {"properties": {key: {"const": name}}, "required": [key]},
            "then": {
                "properties": {"with": {**refs[plugin.params], "description": plugin.summary}},
                **_required(plugin),
            },
        }
        for name, plugin in plugins.items()
    ]


def _required(plugin: AnyAction | Assertion) -> dict[str, Any]:
    """``with`` is required if it has a parameter that is."""
    is_required = any(field.is_required() for field in plugin.params.model_fields.values())
    return {"required": ["with"]} if is_required else {}

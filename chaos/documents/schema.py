"""JSON Schema of experiments, inventories, game days, fleets and statements, for editors.

It accepts what ``nodefall validate`` accepts, and refuses what that refuses for a type, a choice or a pattern. What
depends on two places of a file, as a step that an expectation names, only ``validate`` knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    "description": "Experiments, inventories, game days, fleets and statements of nodefall",
    "fileMatch": ["*.nodefall.yaml", "*.nodefall.yml"],
    "url": ID,
}
_NULL = {"type": "null"}
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
    for definition in definitions.values():
        fields = definition.get("properties", {})
        definition["properties"] = {key: _named(key, field) for key, field in fields.items()}
    _constrain_with(definitions["Step"], "action", registry.actions, refs)
    _constrain_with(definitions["Expectation"], "assert", registry.assertions, refs)
    return {
        "$schema": DIALECT,
        "$id": ID,
        "title": "nodefall: experiments, inventories, game days, fleets and statements",
        "oneOf": [refs[document] for document in _DOCUMENTS],
        "$defs": definitions,
    }


class KeyPatterns(GenerateJsonSchema):
    """All keys of a mapping have the pattern that is given; pydantic lets others have any value."""

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found = super().dict_schema(schema)
        for pattern, values in found.pop("patternProperties", {}).items():
            found |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return found


class _Generator(KeyPatterns):
    """Numbers may be quoted, as far as the models accept that."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - of the base class
        """Never: an editor would show the title of each form of a value instead of the name of its field."""
        return False

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return _or_quoted(super().int_schema(schema), schema.get("strict"), _WHOLE)

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return _or_quoted(super().float_schema(schema), schema.get("strict"), _NUMBER)


def _or_quoted(number: JsonSchemaValue, is_strict: bool | None, pattern: str) -> JsonSchemaValue:
    return number if is_strict else {"anyOf": [number, {"type": "string", "pattern": pattern}]}


def _named(key: str, field: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field, with its name as the title.

    An editor shows the titles of all forms of a value unless they differ: each form has a separate title, and null is
    a type instead of a form where that is possible.
    """
    forms = list(_forms(field))
    own = {name: value for name, value in field.items() if name != "anyOf"}
    if len(forms) == 1:
        return {**forms[0], **own, "title": key}
    is_null = _NULL in forms
    forms = [form for form in forms if form != _NULL]
    if is_null and len(forms) == 1 and "type" in forms[0]:
        nullable = {"type": [forms[0]["type"], "null"]}
        nullable |= {"enum": [*forms[0]["enum"], None]} if "enum" in forms[0] else {}
        return {**forms[0], **nullable, **own, "title": key}
    named = [form if "$ref" in form else {"title": f"{key}, form {n}", **form} for n, form in enumerate(forms, 1)]
    return {"anyOf": [*named, *([{"title": f"no {key}", **_NULL}] if is_null else [])], **own, "title": key}


def _forms(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The forms of a value; those of its forms instead of a form that has some."""
    if "anyOf" not in field:
        yield field
    for form in field.get("anyOf", ()):
        yield from _forms(form)


def _constrain_with(
    definition: dict[str, Any],
    key: str,
    plugins: Mapping[str, AnyAction] | Mapping[str, Assertion],
    refs: Mapping[Any, dict[str, Any]],
) -> None:
    """List the plug-ins in ``definition``, and constrain ``with`` by the selected one."""
    field = definition["properties"][key]
    field["enum"] = [*plugins, *([None] if "null" in field["type"] else [])]
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

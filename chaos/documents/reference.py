"""Every field of the documents, from their models: for ``explain`` and the reference pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.documents.schema import KeyPatterns
from chaos.gameday.document import GameDay
from chaos.gameday.fleet_document import Fleet

DOCUMENTS: tuple[type[BaseModel], ...] = (Experiment, Inventory, GameDay, Fleet)
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
_MAX_KEYS = 8  # that are named in a type
_NAMED = re.compile(r"\.NAME\b|\[\]")


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field. ``path``: the keys to it; NAME is any key, [] any item of a list. ``default``: None if required."""

    document: str
    path: str
    type: str
    default: str | None
    description: str
    examples: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.plain_path.rpartition(".")[2]

    @property
    def plain_path(self) -> str:
        """The path without NAME and []."""
        return _NAMED.sub("", self.path)

    @property
    def parent(self) -> tuple[str, str]:
        """The document and path of the field that this one is directly below."""
        above = self.path.rpartition(".")[0]
        return self.document, re.sub(r"(\.NAME|\[\])+$", "", above)

    def describe(self, below: list[FieldRow]) -> dict[str, Any]:
        """As JSON; ``below``: the fields directly below it."""
        return {
            "kind": f"field of {self.document}",
            "name": self.path,
            "summary": self.description,
            "type": self.type,
            "default": "required" if self.default is None else self.default,
            "examples": list(self.examples),
            "with": [
                {"key": row.key, "type": row.type, "required": row.default is None, "default": row.default}
                | {"description": row.description}
                for row in below
            ],
        }


def fields_of(model: type[BaseModel]) -> Iterator[FieldRow]:
    """The fields of a document, each before those below it."""
    schema = model.model_json_schema(by_alias=True, schema_generator=KeyPatterns)
    yield from _rows(model.__name__, schema, schema.get("$defs", {}), "", ())


def _rows(
    document: str, schema: dict[str, Any], defs: dict[str, Any], prefix: str, seen: tuple[str, ...]
) -> Iterator[FieldRow]:
    required = schema.get("required", ())
    for key, field in schema.get("properties", {}).items():
        path = f"{prefix}.{key}" if prefix else key
        default = None if key in required else _default(field.get("default"))
        examples = tuple(map(str, field.get("examples", _examples(field))))
        yield FieldRow(document, path, type_words(field, defs), default, field.get("description", ""), examples)
        for suffix, name in _below(field):
            if name not in seen:
                yield from _rows(document, defs[name], defs, path + suffix, (*seen, name))


def _examples(field: dict[str, Any]) -> list[Any]:
    return [example for option in field.get("anyOf", ()) for example in option.get("examples", ())]


def _default(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


def _below(field: dict[str, Any], suffix: str = "") -> Iterator[tuple[str, str]]:
    """The models of a field, each with what leads to its keys."""
    for option in (*field.get("anyOf", ()), *field.get("oneOf", ())):
        yield from _below(option, suffix)
    if "$ref" in field:
        yield suffix, str(field["$ref"]).rsplit("/", 1)[-1]
    if isinstance(field.get("items"), dict):
        yield from _below(field["items"], f"{suffix}[]")
    if isinstance(field.get("additionalProperties"), dict):
        yield from _below(field["additionalProperties"], f"{suffix}.NAME")


def parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    """The fields of an action's, an assertion's or a fact's parameters, as JSON."""
    schema = model.model_json_schema(by_alias=True, schema_generator=KeyPatterns)
    required, defs = schema.get("required", ()), schema.get("$defs", {})
    return [
        {
            "key": key,
            "type": type_words(field, defs),
            "required": key in required,
            "default": field.get("default"),
            "description": field.get("description", ""),
        }
        for key, field in schema.get("properties", {}).items()
    ]


def type_words(field: dict[str, Any], defs: dict[str, Any]) -> str:
    """The type of a JSON Schema in a few words; of a mapping with fixed keys, its keys."""
    if options := field.get("anyOf") or field.get("oneOf"):
        words = (type_words(option, defs) for option in options if option.get("type") != "null")
        return " or ".join(dict.fromkeys(words))
    if "enum" in field or "const" in field:
        return " | ".join(str(value) for value in field.get("enum", [field.get("const")]))
    if "$ref" in field:
        return _keys(defs[str(field["$ref"]).rsplit("/", 1)[-1]])
    if field.get("type") == "array":
        return f"list of {type_words(field.get('items', {}), defs)}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"mapping of names to {type_words(field['additionalProperties'], defs)}"
    kinds = field.get("type", "anything")
    kind = next(each for each in kinds if each != "null") if isinstance(kinds, list) else str(kinds)
    return _WORDS.get(kind, kind)


def _keys(schema: dict[str, Any]) -> str:
    keys = list(schema.get("properties", ()))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    more = ", ..." if len(keys) > _MAX_KEYS else ""
    return f"{{{', '.join(keys[:_MAX_KEYS])}{more}}}"

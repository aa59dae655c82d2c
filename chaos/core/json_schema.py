"""What the JSON schema of a type says beyond pydantic's: the patterns and forms of its validators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema


@dataclass(frozen=True, eq=False)
class JsonSchema:
    """Annotation of a type: keywords that its JSON schema has, too, so that it accepts what the validators do.

    Patterns are those of ECMAScript, as editors read them: what Python has beyond it is no pattern of a schema.
    """

    keywords: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), **self.keywords}


@dataclass(frozen=True, eq=False)
class AlsoAccepts(JsonSchema):
    """Annotation of a type whose validators accept another form, too: the keywords are its schema."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(core), dict(self.keywords)]}


def matching(pattern: str, **keywords: Any) -> JsonSchema:
    """The schema of a text that matches ``pattern`` as a whole."""
    return JsonSchema({"pattern": f"^(?:{pattern})$", **keywords})

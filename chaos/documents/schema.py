"""JSON Schema of experiments, inventories, game days and fleets, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from chaos.core.action import AnyAction
from chaos.core.assertion import Assertion
from chaos.core.experiment import Experiment
from chaos.core.inventory import Inventory
from chaos.core.registry import PluginRegistry
from chaos.gameday.document import GameDay
from chaos.gameday.fleet_document import Fleet

_DOCUMENTS: tuple[type[BaseModel], ...] = (Experiment, Inventory, GameDay, Fleet)
ID = "https://nodefall.dev/schema/v1alpha1.json"
CATALOG_ENTRY = {  # for SchemaStore's catalog.json
    "name": "nodefall",
    "description": "Experiments, inventories, game days and fleets of nodefall",
    "fileMatch": ["*.nodefall.yaml", "*.nodefall.yml"],
    "url": ID,
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(registry: PluginRegistry) -> dict[str, Any]:
    """One schema for all kinds; ``with`` has the parameters of its action or assertion."""
    plugins: list[AnyAction | Assertion] = [*registry.actions.values(), *registry.assertions.values()]
    models: list[type[BaseModel]] = list(dict.fromkeys([*_DOCUMENTS, *(p.params for p in plugins)]))
    references, schema = models_json_schema([(model, "validation") for model in models], by_alias=True)
    refs = {model: reference for (model, _), reference in references.items()}
    definitions: dict[str, Any] = schema["$defs"]
    _constrain_with(definitions["Step"], "action", registry.actions, refs)
    _constrain_with(definitions["Expectation"], "assert", registry.assertions, refs)
    return {
        "$schema": DIALECT,
        "$id": ID,
        "title": "nodefall: experiments, inventories, game days and fleets",
        "oneOf": [refs[document] for document in _DOCUMENTS],
        "$defs": definitions,
    }


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
            "then": {"properties": {"with": {**refs[plugin.params], "description": plugin.summary}}},
        }
        for name, plugin in plugins.items()
    ]

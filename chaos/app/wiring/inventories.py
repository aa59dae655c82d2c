"""Inventories, from files or built by a program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chaos.core.errors import UsageError
from chaos.core.inventory import Inventory, Lab
from chaos.documents.inventory import load_inventory


def as_inventory(source: Inventory | Path | str) -> Inventory:
    """``source``, or the inventory in that file. Raises BadInput."""
    return source if isinstance(source, Inventory) else load_inventory(Path(source))


def lab_inventory(source: Inventory | Path | str | None, settings: Mapping[str, Any]) -> Inventory:
    """The inventory of a lab with ``settings`` applied; by default ``lab: {}``. Raises BadInput, UsageError."""
    if source is None:
        head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "lab"}}
        inventory = Inventory.model_validate(head | {"lab": {}})
    else:
        inventory = as_inventory(source)
    if inventory.lab is None:
        raise UsageError(f"{inventory.metadata.name} describes a cluster, not a lab", hint="see hosts/lab.yaml")
    return inventory.model_copy(update={"lab": with_settings(inventory.lab, settings)})


def with_settings(lab: Lab, settings: Mapping[str, Any]) -> Lab:
    """``lab`` with ``settings`` applied, by the keys of an inventory. Raises UsageError."""
    try:
        return Lab.model_validate({**lab.model_dump(by_alias=True), **settings})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{first['loc'][0]}: {first['msg'].removeprefix('Value error, ')}") from error

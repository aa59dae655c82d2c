"""What an experiment may name: actions and assertions, found by walking their packages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from chaos.model.action import Action
from chaos.model.assertion import Assertion


@dataclass(frozen=True, slots=True)
class PluginRegistry:
    """Everything that can be named, by name."""

    actions: Mapping[str, Action]
    assertions: Mapping[str, Assertion]


def discover(package: ModuleType, attribute: str) -> dict[str, Any]:
    """``attribute`` of every module of ``package`` that has it, by its ``name``; sorted."""
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        plugin = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), attribute, None)
        if plugin is not None:
            found[plugin.name] = plugin
    return dict(sorted(found.items()))

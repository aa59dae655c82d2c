"""The names that others import, with their parameters, as public_surface.txt has them: see docs/stability.md."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

import chaos.extend
import chaos.testing

SURFACE = Path(__file__).with_name("public_surface.txt")


def _modules() -> Iterator[str]:
    yield "chaos.api"
    yield "chaos.extend"
    yield from (f"chaos.extend.{info.name}" for info in pkgutil.iter_modules(chaos.extend.__path__))
    yield "chaos.testing"


def _parameters(value: Any) -> str:
    """Names of fields or parameters; those with a default end with ``=``."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return f"({', '.join(name for name in value.model_fields)})"
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        return f"({', '.join(value.__struct_fields__)})"
    if is_dataclass(value):
        return f"({', '.join(field.name for field in fields(value))})"
    if inspect.isfunction(value):
        found = inspect.signature(value).parameters.values()
        return f"({', '.join(each.name + ('' if each.default is each.empty else '=') for each in found)})"
    return ""


def _methods(value: Any) -> Iterator[str]:
    if isinstance(value, type) and value.__module__.startswith("chaos."):
        for name, method in sorted(vars(value).items()):
            if not name.startswith("_") and inspect.isfunction(method):
                yield f".{name}{_parameters(method)}"


def surface() -> str:
    lines = []
    for module in _modules():
        found = importlib.import_module(module)
        for name in sorted(found.__all__):
            value = getattr(found, name)
            lines.append(f"{module}.{name}{_parameters(value)}")
            lines += [f"{module}.{name}{method}" for method in _methods(value)]
    return "\n".join(lines) + "\n"


def test_the_public_surface_is_as_recorded() -> None:
    """Run ``python -m tests.api.test_public_surface`` after a change that was meant, with a line in the changelog."""
    assert surface() == SURFACE.read_text(encoding="utf-8")


if __name__ == "__main__":
    SURFACE.write_text(surface(), encoding="utf-8")

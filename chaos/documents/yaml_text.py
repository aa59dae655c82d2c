"""YAML output for people and for kubectl apply, and values of YAML on one line, as in the examples of actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from chaos.documents.yaml_tree import resolve

_PLAIN = re.compile(r"[\w~/.][\w~/.@+-]*", re.ASCII)
_WIDE = 100_000  # columns: never fold


class _NoAliasDumper(yaml.SafeDumper):
    """Dumper without anchors: a list that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_NoAliasDumper.add_representer(str, _represent_text)


def dump(documents: Sequence[dict[str, Any]]) -> str:
    """YAML of all documents, keys in order; collections of scalars on one line, texts of several lines as such."""
    return yaml.dump_all(
        documents, Dumper=_NoAliasDumper, sort_keys=False, explicit_start=True, width=120, default_flow_style=None
    )


def inline(value: Any) -> str:
    """A value on one line, for text that is put together by hand: read the same by YAML 1.1 and 1.2."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{inline(key)}: {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    if _PLAIN.fullmatch(value) and resolve(value) == value and yaml.safe_load(value) == value:
        return value
    return str(yaml.dump(value, Dumper=yaml.SafeDumper, default_style='"', width=float("inf"))).strip()


def parse_flow(text: str) -> dict[str, Any]:
    """The mapping in a text such as ``{assert: pods-stuck, within: 5s}``. Raises ValueError."""
    try:
        found: dict[str, Any] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return found


def flow(value: Any) -> str:
    """The value on one line, keys in order."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=_WIDE, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")

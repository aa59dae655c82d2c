"""YAML output for people and for kubectl apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml


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

"""Documents as YAML that people read and kubectl applies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml


class _NoAliasDumper(yaml.SafeDumper):
    """Without anchors: the same list twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        return True


def dump(documents: Sequence[dict[str, Any]]) -> str:
    """One document after the other, keys in their order; what holds no lists or mappings stands in one line."""
    return yaml.dump_all(
        documents, Dumper=_NoAliasDumper, sort_keys=False, explicit_start=True, width=120, default_flow_style=None
    )

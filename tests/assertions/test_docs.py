"""docs/assertions.md has a row for every assertion, naming every parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.assertions._pods import QuantifiedFilter, Quantity
from chaos.judge.rates import Order, Rate
from chaos.judge.replacements import Replacement
from tests.kit.story import catalogue

DOCS = Path(__file__).parents[2] / "docs" / "assertions.md"
ROWS = [line for line in DOCS.read_text().splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("name", sorted(catalogue().assertions))
def test_a_row_for_every_assertion(name: str) -> None:
    rows = [row for row in ROWS if row.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    if expands := getattr(catalogue().assertions[name], "expands_to", ""):
        assert expands.replace("pods", "`pods`", 1) in rows[0]
        return
    for field, info in catalogue().assertions[name].params.model_fields.items():
        assert f"`{info.alias or field}`" in rows[0]


def test_every_key_of_a_question_about_pods_is_told() -> None:
    text = DOCS.read_text()
    for model in (QuantifiedFilter, Quantity, Rate, Order, Replacement):
        for field, info in model.model_fields.items():
            assert f"`{info.alias or field}`" in text, f"{model.__name__}.{field}"

"""docs/assertions/ and docs/assertions.md are up to date, and describe every key of the questions of ``pods``."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.verdicts.assertions._pods import QuantifiedFilter, Quantity
from chaos.verdicts.judge.replacements import Replacement
from chaos.verdicts.judge.series import Order, Rate
from tests.kit.story import plugin_registry
from tools import assertion_pages

DOCS = Path(__file__).parents[3] / "docs"
INDEX = DOCS / "assertions.md"
ROWS = [line for line in INDEX.read_text().splitlines() if line.startswith("| [`")]


def test_pages_are_up_to_date() -> None:
    pages = assertion_pages.pages()
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text() != text]
    assert not stale, "run `python tools/assertion_pages.py`"
    assert set((DOCS / "assertions").glob("*.md")) == set(pages) - {INDEX}


@pytest.mark.parametrize("name", sorted(plugin_registry().assertions))
def test_a_row_for_every_assertion(name: str) -> None:
    rows = [row for row in ROWS if row.startswith(f"| [`{name}`](assertions/{name}.md) |")]
    assert len(rows) == 1
    if expands := getattr(plugin_registry().assertions[name], "expands_to", ""):
        assert expands.replace("pods with ", "`pods` with `", 1) in rows[0]
        return
    page = (DOCS / "assertions" / f"{name}.md").read_text()
    for field, info in plugin_registry().assertions[name].params.model_fields.items():
        key = f"`{info.alias or field}`"
        assert key in rows[0]
        assert f"- {key}: " in page


@pytest.mark.parametrize("model", [QuantifiedFilter, Quantity, Rate, Order, Replacement])
def test_every_key_of_a_question_of_pods_is_described(
    model: type[QuantifiedFilter | Rate | Order | Replacement],
) -> None:
    text = INDEX.read_text()
    for field, info in model.model_fields.items():
        assert f"`{info.alias or field}`" in text, f"{model.__name__}.{field}"

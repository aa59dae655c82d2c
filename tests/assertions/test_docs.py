"""docs/assertions.md has a row for every assertion, naming every parameter."""

from __future__ import annotations

from pathlib import Path

import pytest
from story import catalogue

ROWS = [
    line
    for line in (Path(__file__).parents[2] / "docs" / "assertions.md").read_text().splitlines()
    if line.startswith("| `")
]


@pytest.mark.parametrize("name", sorted(catalogue().assertions))
def test_a_row_for_every_assertion(name: str) -> None:
    rows = [row for row in ROWS if row.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    for field, info in catalogue().assertions[name].params.model_fields.items():
        assert f"`{info.alias or field}`" in rows[0]

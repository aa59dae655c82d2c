"""A report with a further column."""

from __future__ import annotations

import pytest

from chaos.reports.run import html, markdown
from chaos.reports.run.page import page_data
from chaos.reports.run.verdicts import VERDICTS, Row
from chaos.reports.tables import Column


@pytest.fixture
def margin_column(monkeypatch: pytest.MonkeyPatch) -> Column[Row]:
    """A further column of the verdicts, as somebody would add it: one entry of VERDICTS."""
    column: Column[Row] = Column("margin", lambda row: f"margin of <{row.key}>")
    for module in (html, markdown, page_data):
        monkeypatch.setattr(module, "VERDICTS", (*VERDICTS, column))
    return column

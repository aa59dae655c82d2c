"""docs/doctor.md lists every check, and every key of the JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec

from chaos.app.doctor import Report
from chaos.engine.preflight.findings import Finding
from tools import doctor_page

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


def test_the_table_lists_the_checks() -> None:
    assert doctor_page.page() == PAGE, "run `python tools/doctor_page.py`"
    assert all(f"| `{name}` |" in PAGE for name in doctor_page.CHECKS)


def test_every_key_of_the_json_is_documented() -> None:
    section = PAGE.partition("## As JSON")[2]
    for record in (Report, Finding):
        for field in msgspec.structs.fields(record):
            assert f"`{field.encode_name}`" in section

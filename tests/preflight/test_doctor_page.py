"""docs/doctor.md tells of every check, and of every field of the JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec

from chaos.app.doctor import Report
from chaos.preflight.findings import Finding
from tools import doctor_page

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


def test_the_table_is_what_the_checks_say() -> None:
    assert doctor_page.page() == PAGE, "run `python tools/doctor_page.py`"
    assert all(f"| `{name}` |" in PAGE for name in doctor_page.CHECKS)


def test_every_field_of_the_json_is_told() -> None:
    told = PAGE.partition("## As JSON")[2]
    for record in (Report, Finding):
        for field in msgspec.structs.fields(record):
            assert f"`{field.encode_name}`" in told

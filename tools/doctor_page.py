"""Write the table of docs/doctor.md from the checks.

Run `python tools/doctor_page.py` after changing a check; a test compares.
"""

from __future__ import annotations

from pathlib import Path

import chaos.engine.preflight.checks
from chaos.core.registry import discover
from chaos.engine.preflight.check import Check

PAGE = Path(__file__).parents[1] / "docs" / "doctor.md"
CHECKS: dict[str, Check] = discover(chaos.engine.preflight.checks, Check)
_HEAD = "|---|---|---|---|---|\n"


def page() -> str:
    """The whole page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_HEAD)
    after = rest.partition("\n\n")[2] if rest.startswith("|") else rest.lstrip("\n")
    return f"{before}{_HEAD}" + "\n".join(map(_row, CHECKS.values())) + f"\n\n{after}"


def _row(check: Check) -> str:
    facts = ", ".join(f"`{fact}`" for fact in check.facts)
    hosts = ", ".join(each.capitalize() for each in sorted(check.systems)) if len(check.systems) == 1 else ""
    return f"| `{check.name}` | {check.summary} | {hosts} | {facts} | {'' if check.is_final else 'overrides it'} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Write the table of docs/lab-versions.md from the differences that the lab simulates.

Run `python tools/lab_versions_page.py` after changing a difference; a test compares.
"""

from __future__ import annotations

from pathlib import Path

from chaos.lab.versions import DIFFERENCES, Difference

PAGE = Path(__file__).parents[1] / "docs" / "lab-versions.md"
_HEAD = "| since | what | before | source |\n|---|---|---|---|\n"


def page() -> str:
    """The whole page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_HEAD)
    after = rest.partition("\n\n")[2] if rest.startswith("|") else rest.lstrip("\n")
    return f"{before}{_HEAD}" + "\n".join(map(_row, DIFFERENCES)) + f"\n\n{after}"


def _row(item: Difference) -> str:
    without = "".join(f", not v1.{minor}" for minor in sorted(item.without))
    return f"| v1.{item.since}{without} | {item.text} | {item.before} | {item.source} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

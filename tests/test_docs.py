"""What comments and pages refer to exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FACTS = ROOT / "docs" / "kubernetes-facts.md"
_CITATION = re.compile(
    r"\bfacts (?:section |sections |page, section )?(\d+(?:\.\d+)?(?:(?:, | and |-| to )\d+(?:\.\d+)?)*)", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OUTSIDE = re.compile(r"\(design\b|\bdesign(?: page)?,? section \d|\bsection \d+(?:\.\d+)? of the design")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)  # PowerShell's types and calls look like links
_LINK = re.compile(r"\]\(([^)#\s]+)")
SOURCES = [
    *ROOT.glob("chaos/**/*.py"),
    *(p for p in ROOT.glob("tests/**/*.py") if p != Path(__file__)),
    *ROOT.glob("docs/**/*.md"),
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *ROOT.glob("docs/**/*.md")]


def sections() -> set[str]:
    return set(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)", FACTS.read_text(encoding="utf-8"), re.MULTILINE))


def citations(path: Path) -> Iterator[str]:
    for match in _CITATION.finditer(re.sub(r"\s*\n\s*#?\s*", " ", path.read_text(encoding="utf-8"))):
        yield from _NUMBER.findall(match[1])


def test_cited_facts_are_sections_of_the_page() -> None:
    known = sections()
    unknown = {path: missing for path in SOURCES if (missing := set(citations(path)) - known)}
    assert not unknown


def test_citations_are_found_at_all() -> None:
    assert sum(len(list(citations(path))) for path in SOURCES) > 100
    assert {"0", "1.6", "5.4", "16", "18"} <= sections()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_to_files(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        if "://" not in link and not link.startswith("mailto:"):
            assert (page.parent / link).exists(), link


def test_comments_cite_no_document_that_is_not_here() -> None:
    """A source that readers cannot open is none."""
    cited = {path: found[0] for path in SOURCES if (found := _OUTSIDE.search(path.read_text(encoding="utf-8")))}
    assert not cited


def test_the_readme_is_short_and_its_counts_are_true() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    counts = re.findall(r"\[(\d+) (actions|assertions|bundled ones)\]", text)
    pages = {"actions": "docs/actions/*.md", "assertions": "docs/assertions/*.md", "bundled ones": "experiments/*.yaml"}
    assert {what: int(number) for number, what in counts} == {w: len(list(ROOT.glob(p))) for w, p in pages.items()}

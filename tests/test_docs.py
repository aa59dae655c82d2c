"""What comments and pages refer to exists: files, the tests of guards against threats, and messages of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
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
    counts = re.findall(r"\[(\d+) (actions|assertions|bundled experiments)\]", text)
    pages = {
        "actions": "docs/actions/*.md",
        "assertions": "docs/assertions/*.md",
        "bundled experiments": "experiments/*.yaml",
    }
    found = {
        what: len(set(ROOT.glob(pattern)) - {ROOT / "experiments" / "statements.yaml"})
        for what, pattern in pages.items()
    }
    assert {what: int(number) for number, what in counts} == found, "correct the numbers in README.md"


SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
STRIDE = (
    "Spoofing",
    "Tampering",
    "Repudiation",
    "Information disclosure",
    "Denial of service",
    "Elevation of privilege",
)
ACCEPTED = "Accepted risks"
ATTACKERS = re.compile(r"^- \*\*([a-z ]+)\*\*: ", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
Row = list[str]


def rows(heading: str) -> list[Row]:
    """The cells of the table below a heading, without its head."""
    _, _, rest = SECURITY.partition(f"\n### {heading}\n")
    section = re.split(r"\n##+ ", rest, maxsplit=1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


THREATS = [(heading, row) for heading in STRIDE for row in rows(heading)]
TESTS = sorted(set(NAMED.findall(SECURITY)))


@cache
def functions(path: Path) -> set[str]:
    """Tests of a module, those of its classes included; none if there is no such module."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "test"), TESTS, ids=lambda part: part)
def test_named_tests_exist(file: str, test: str) -> None:
    assert test in functions(ROOT / file), f"docs/security.md names {file}::{test}"


@pytest.mark.parametrize("heading", [*STRIDE, ACCEPTED])
def test_every_kind_of_threat_has_rows(heading: str) -> None:
    assert len(rows(heading)) >= 4


@pytest.mark.parametrize(("heading", "row"), THREATS, ids=lambda part: part if isinstance(part, str) else part[2])
def test_a_threat_has_a_guard_and_a_test(heading: str, row: Row) -> None:
    asset, attackers, way, guard, tests = row
    assert all((asset, way, guard))
    assert set(attackers.split(", ")) <= set(ATTACKERS.findall(SECURITY)), heading
    assert NAMED.sub("", tests).replace(", ", "") == "", "the last cell has names of tests only"
    assert NAMED.search(tests)


def test_an_accepted_risk_has_a_reason() -> None:
    for asset, _, way, why in rows(ACCEPTED):
        assert all((asset, way, why)), way


TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
MESSAGES = re.findall(r"^### `(.+)`$", TROUBLESHOOTING.read_text(encoding="utf-8"), re.MULTILINE)
LEAST = 5  # letters of a message that are not placeholders: less would be like anything


def texts(tree: ast.AST) -> Iterator[list[str]]:
    """The texts in a module, each as its parts between placeholders."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield [node.value]
        elif isinstance(node, ast.JoinedStr):
            parts = [""]
            for value in node.values:
                if isinstance(value, ast.Constant):
                    parts[-1] += str(value.value)
                else:
                    parts.append("")
            yield parts


@cache
def patterns() -> list[re.Pattern[str]]:
    """One for each text of the code that is long enough; the lab's are not those of nodefall."""
    found = set()
    for path in sorted((ROOT / "chaos").rglob("*.py")):
        if path.relative_to(ROOT / "chaos").parts[0] != "lab":
            for parts in texts(ast.parse(path.read_text(encoding="utf-8"))):
                if sum(character.isalpha() for part in parts for character in part) >= LEAST:
                    found.add(".*".join(re.escape(part) for part in parts))
    return [re.compile(pattern) for pattern in sorted(found)]


def is_made(message: str) -> bool:
    """A text that ends with a space is the start of a message."""
    return any(
        pattern.fullmatch(message) or (pattern.pattern.endswith("\\ ") and pattern.match(message))
        for pattern in patterns()
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_the_code_makes_the_message(message: str) -> None:
    assert is_made(message)


def test_messages_of_nothing_are_not_found() -> None:
    assert not is_made("the moon is not in the right phase: wait for the next one")
    assert not is_made("wrong cluster: the server has another UID")


def test_there_are_enough_and_each_once() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) >= 20

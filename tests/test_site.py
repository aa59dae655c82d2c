"""The documentation site: links, navigation, and nothing from elsewhere. ``.ci/run`` builds it with strict links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tools import site

ROOT = Path(__file__).parents[1]
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "link", "target", "changed"),
    [
        ("docs/lab.md", "ci.md", "docs/ci.md", "ci.md"),
        ("docs/lab.md", "../hosts/lab.yaml", "hosts/lab.yaml", "hosts/lab.yaml"),
        ("docs/lab.md", "../experiments/README.md", "experiments/README.md", "experiments/README.md"),
        ("docs/actions/drain.md", "../facts.md", "docs/facts.md", "../facts.md"),
        ("docs/ci.md", "../README.md", "README.md", "index.md"),
        ("README.md", "docs/ci.md", "docs/ci.md", "ci.md"),
        ("README.md", "docs/screenshots/violated.png", "docs/screenshots/violated.png", "screenshots/violated.png"),
        ("README.md", "experiments/", "experiments/README.md", "experiments/README.md"),
        ("experiments/README.md", "../hosts/lab.yaml", "hosts/lab.yaml", "../hosts/lab.yaml"),
        (
            "docs/gameday.md",
            "../deploy/helm/nodefall",
            "deploy/helm/nodefall/README.md",
            "deploy/helm/nodefall/README.md",
        ),
        ("docs/ci.md", "nowhere.md", "", "nowhere.md"),
        ("docs/ci.md", "../../etc/passwd", "", "../../etc/passwd"),
        ("docs/ci.md", "https://kubernetes.io/docs/", "", "https://kubernetes.io/docs/"),
    ],
)
def test_a_link_leads_to_where_the_site_has_the_file(page: str, link: str, target: str, changed: str) -> None:
    assert site.target_of(page, link) == target
    assert (
        site.change_links(f"see [x]({link}#part) and `[x]({link})`", page)
        == f"see [x]({changed}#part) and `[x]({link})`"
    )


def test_links_in_code_are_none() -> None:
    text = "[a](b.md)\n```\n[c](d.md)\n```\n`[e](f.md)` ![g](h.png)"
    assert list(site.links(text)) == ["b.md", "h.png"]


def test_files_that_pages_lead_to_are_found_through_other_pages() -> None:
    found = site.linked_files(["docs/lab.md", "experiments/README.md"])
    assert found["hosts/lab.yaml"] is None
    assert "experiments/graceful-poweroff.yaml" in found
    assert not [path for path in found if path.startswith("docs/")]


def test_a_directory_without_a_page_gets_a_list_of_its_files() -> None:
    text = site.linked_files(["docs/gameday.md"])["deploy/helm/nodefall/README.md"]
    assert text is not None
    assert "- `Chart.yaml`" in text


@pytest.mark.parametrize(
    ("nav", "expected"),
    [
        (["a.md", "adr/*"], ["a.md", "adr/1.md", "adr/2.md"]),
        (
            [{"Decisions": ["adr/*"]}, {"Home": "index.md"}],
            [{"Decisions": ["adr/1.md", "adr/2.md"]}, {"Home": "index.md"}],
        ),
    ],
)
def test_the_navigation_has_every_page_of_a_directory(nav: Any, expected: Any) -> None:
    assert site.expand(nav, lambda directory: [f"{directory}/1.md", f"{directory}/2.md"]) == expected


def test_every_page_is_in_the_navigation_or_excluded() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    missing = {p for p in pages if p not in CONFIG and f"{p.partition('/')[0]}/*" not in CONFIG}
    assert {page.partition("/")[0] for page in missing} == {"plugin-template"}


def test_the_site_loads_nothing_from_elsewhere() -> None:
    assert "font: false" in CONFIG
    assert "analytics" not in CONFIG
    assert not re.search(r"^extra_(css|javascript)", CONFIG, re.MULTILINE)

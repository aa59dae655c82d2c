"""Writes docs/statements.md from experiments/statements.yaml: each statement of the documentation, and what tests it.

Run `python tools/statement_page.py` after a change of the map; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.documents.statements import PAGES, Statement, load_statements

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "statements.md"
_TITLES = {
    "node-shutdown": "Node Shutdowns",
    "disruptions": "Disruptions",
    "nodes": "Nodes",
    "force-delete": "Force Delete StatefulSet Pods",
    "taints": "Taints and Tolerations",
}
_HEAD = """<!-- Written by tools/statement_page.py from experiments/statements.yaml. -->

# Statements

What five pages of the Kubernetes documentation say, in our own words, and which
[bundled experiments](../experiments/README.md) notice when it is not so: each with the names of its expectations.
`nodefall explain EXPERIMENT` shows the same of one experiment.

A **mutant** is a simulated cluster on which the statement is false. An experiment that is held without a mutant has to
be violated with it, which `tools/mutants.py` tests; [the matrix](mutants.md) has the exit codes. A statement without an
experiment is **not tested**.
"""


def page() -> str:
    """The whole page."""
    found = load_statements(ROOT / "experiments" / "statements.yaml").statements
    return "\n".join([_HEAD, *_counts(found), *_sections(found), ""])


def _counts(found: Sequence[Statement]) -> Iterator[str]:
    yield "| page | statements | tested | mutants | cannot be tested | not tested |"
    yield "|---|---|---|---|---|---|"
    for page, title in _TITLES.items():
        yield _count(title, [each for each in found if each.page == page])
    yield _count("all", found)


def _count(title: str, found: Sequence[Statement]) -> str:
    tested, untestable = sum(bool(each.tested_by) for each in found), sum(bool(each.untestable) for each in found)
    mutants = sum(len(each.mutants) for each in found)
    return f"| {title} | {len(found)} | {tested} | {mutants} | {untestable} | {len(found) - tested - untestable} |"


def _sections(found: Sequence[Statement]) -> Iterator[str]:
    for page, title in _TITLES.items():
        yield f"\n## [{title}]({PAGES[page]})\n"
        yield "| | statement | tested by | false with |"
        yield "|---|---|---|---|"
        yield from (_row(each) for each in found if each.page == page)


def _row(each: Statement) -> str:
    versions = f" ({each.versions})" if each.versions else ""
    return f"| {each.id} | [{_cell(each.says)}]({each.url}){versions} | {_tests(each)} | {_mutants(each)} |"


def _tests(each: Statement) -> str:
    if each.untestable:
        return f"cannot be tested: {_cell(each.untestable)}"
    tests = [f"[{name}](../experiments/{name}.yaml){_names(names)}" for name, names in each.tested_by.items()]
    return "<br>".join(tests) or "**not tested**"


def _names(names: Sequence[str]) -> str:
    return f": {_cell('; '.join(names))}" if names else ""


def _mutants(each: Statement) -> str:
    hidden = [f"{_cell(words)} (cannot be seen: {_cell(why)})" for words, why in each.unobservable.items()]
    return "; ".join([*map(_cell, each.mutants), *hidden])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

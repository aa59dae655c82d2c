"""The YAML language server with docs/nodefall.schema.json: red lines only where they should be, hover, completion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consumers.conftest import HERE
from tests.consumers.language_server import LanguageServer

pytestmark = pytest.mark.slow
ROOT = HERE.parents[1]
FILES = [
    path
    for pattern in ("experiments/**/*.yaml", "hosts/**/*.yaml", "deploy/example/*.yaml", "tests/consumers/field/*.yaml")
    for path in sorted(ROOT.glob(pattern))
    if path.read_text(encoding="utf-8").lstrip("# \n").find("apiVersion: nodefall.dev/") >= 0
]
PHASES = HERE / "field" / "schema-phase.yaml"


@pytest.fixture(scope="module")
def server(npm: Path) -> Iterator[LanguageServer]:
    client = LanguageServer(npm, ROOT / "docs" / "nodefall.schema.json")
    yield client
    client.close()


def test_no_bundled_file_and_none_of_users_has_a_red_line(server: LanguageServer) -> None:
    assert len(FILES) > 130
    found = {}
    for path in FILES:
        server.open(path, path.read_text(encoding="utf-8"))
        found[path.relative_to(ROOT)] = server.problems(path)
    assert {path: problems for path, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("within: 5s", "within: 5"),
        ("within: 5s", "within: soon"),
        ("phase: Running", "phase: running"),
        ("action: cordon", "action: cordn"),
        ("maxDuration: 5m", "maxduration: 5m"),
        ("count: 1}", "count: none}"),
        ("within: 5s", "order: [a, b]"),  # beside assert
    ],
)
def test_a_wrong_value_has_a_red_line(server: LanguageServer, right: str, wrong: str) -> None:
    text = PHASES.read_text(encoding="utf-8")
    assert right in text
    path = PHASES.with_name(f"{wrong.replace(' ', '').replace(':', '-')}.yaml")
    changed = text.replace(right, wrong)
    server.open(path, changed)
    lines = [number for number, line in enumerate(changed.splitlines(), 1) if wrong in line]
    assert {int(problem.partition(":")[0]) for problem in server.problems(path)} & {*lines, 6}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("within", "The assertion must be true at some moment before this deadline"),
        ("maxDuration", "How long the run may take"),
        ("action", "The action to run"),
        ("phase", ""),
        ("recovery", ""),
    ],
)
def test_hover_describes_the_field(server: LanguageServer, word: str, expected: str) -> None:
    text = PHASES.read_text(encoding="utf-8")
    path = PHASES.with_name("hover.yaml")
    server.open(path, text)
    line = next(number for number, line in enumerate(text.splitlines()) if word in line)
    shown = server.hover(path, line, text.splitlines()[line].index(word) + 1)
    assert expected in shown
    assert "||" not in shown, "the titles of all forms of a value"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["    - {name: x, action: "], {"cordon", "drain", "power-cut"}),
        (["    - name: x", "      "], {"action", "target", "with", "after"}),
    ],
)
def test_completion_offers_fields_and_names(server: LanguageServer, lines: list[str], expected: set[str]) -> None:
    head = PHASES.read_text(encoding="utf-8").partition("  method:")[0]
    path = PHASES.with_name(f"completion-{len(lines)}.yaml")
    text = "\n".join([head.rstrip("\n"), "  method:", *lines])
    server.open(path, text)
    found = server.completions(path, text.count("\n"), len(lines[-1]))
    assert expected <= set(found)

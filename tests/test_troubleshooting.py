"""docs/troubleshooting.md: each message that it quotes is one that the code makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "troubleshooting.md"
MESSAGES = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
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
    """A text that ends with a space is the begin of a message."""
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

"""Commands in a page with what they print: parsed, and compared with what they print now.

A line ``...`` stands for any lines. Values that differ from run to run (times, lengths of runs, IDs, hashes, ports,
columns that depend on them) are alike.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kit.processes import WALL, environment

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VALUES = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+"), "TIME"),
    (re.compile(r"\b\d{8}T\d{6}Z\b"), "STAMP"),
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b"), "HASH"),
    (re.compile(r"(?<=[a-z]-)[0-9a-f]{6}\b"), "ID"),
    (re.compile(r"\bseed \d+"), "seed N"),
    (re.compile(r"\bworker-\d+\b"), "worker-N"),
    (re.compile(r"(?<![\w.])(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?m?s\b|(?<![\w.])(?:\d+h)?\d+m\b"), "LENGTH"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "LENGTH"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"/\S+/state/nodefall\b|~/\.local/state/nodefall\b"), "STATE"),
    (re.compile(r"\b[\w.-]+@[\w.-]+(?:/\w+)*\b"), "PERSON"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True, slots=True)
class Command:
    """``argv``: without the dollar sign. ``output``: as the page shows it."""

    argv: tuple[str, ...]
    output: str


def commands(page: str) -> Iterator[Command]:
    """The commands of all console blocks, in order."""
    for block in _BLOCK.finditer(page):
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield Command(tuple(line.split()), output)


def blocks(page: str, language: str) -> list[str]:
    """The contents of the other fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def normalize(text: str) -> list[str]:
    """Lines of an output without what differs from run to run."""
    for pattern, word in _VALUES:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def is_alike(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    return _match(normalize(shown), normalize(printed))


def _match(shown: list[str], printed: list[str]) -> bool:
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(_match(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and _match(shown[1:], printed[1:])


def run(command: Command, cwd: Path) -> tuple[int, str]:
    """Exit code and what it prints, stderr included."""
    program, *arguments = command.argv
    assert program == "nodefall"
    done = subprocess.run(
        [sys.executable, "-m", "chaos", *arguments], cwd=cwd, env=environment(cwd) | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * WALL, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout

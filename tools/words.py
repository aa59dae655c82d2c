"""Find words that are banned from code and prose: ``python tools/words.py [PATH...]``; exit code 1 where one is found.

docs/glossary.md has the words to use instead. Identifiers are split at underscores and capitals. A line that must keep
a word, as a key of a stored format, ends with the comment ``words: keep``.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEEP = "words: keep"
SUFFIXES = (".py", ".md", ".yaml", ".yml", ".toml", ".sh", ".js", ".css", "")
# Anywhere: the word, and what to write instead.
BANNED = {
    "told tell tells telling": "report, describe, print",
    "deed deeds": "operation",
    "owe owes owed owing debt debts debtor": "pending undo",
    "wish placement wished": "options, request",
    "eye eyes": "observer",
    "sight": "coverage, observation gap",
    "anew": "again",
    "spoiled spoilt": "invalidated",
    "nobody": "no one, or name the subject",
    "doors": "limit, slot",
}
# In identifiers only: as prose they are plain English.
BANNED_NAMES = {
    "look looks looked": "collect, inspect, evaluate",
    "kept": "saved, filtered",
    "asked": "options, requested",
    "agreed": "confirmed",
}
PHRASES = {
    "all the same": "still, nevertheless",
    "as it was": "unchanged, the previous ...",
    "says so": "reports ...",
    "lets in": "admits, allows",
    "let in": "admit, allow",
    "of its own": "separate, dedicated",
}
# Sentences of Kubernetes' documentation that are quoted.
QUOTES = ("keys that tell Kubernetes", "tells the StatefulSet controller")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_PHRASE = re.compile(r"\b(" + "|".join(re.escape(p).replace(r"\ ", r"\s+") for p in PHRASES) + r")\b", re.IGNORECASE)
_INSTEAD = {word: instead for words, instead in BANNED.items() for word in words.split()}
_INSTEAD_OF_NAME = _INSTEAD | {word: instead for words, instead in BANNED_NAMES.items() for word in words.split()}
# From Python 3.12 on f-strings are tokens of another type.
_PROSE_TOKENS = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))

Finding = tuple[int, str, str]  # line, word, what to write instead


def findings(path: Path) -> Iterator[Finding]:
    """Banned words of one file, by line."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = _in_python(text) if path.suffix == ".py" else _in_prose(enumerate(lines, 1))
    for line, word, instead in sorted({*found, *_phrases(text)}):
        if KEEP not in lines[line - 1]:
            yield line, word, instead


def _in_python(text: str) -> Iterator[Finding]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for part in _PART.findall(token.string):
                if part.lower() in _INSTEAD_OF_NAME:
                    yield token.start[0], token.string, _INSTEAD_OF_NAME[part.lower()]
        elif token.type in _PROSE_TOKENS:
            yield from _in_prose(enumerate(token.string.splitlines(), token.start[0]))


def _in_prose(lines: Iterable[tuple[int, str]]) -> Iterator[Finding]:
    for number, line in lines:
        for quote in QUOTES:
            line = line.replace(quote, "")  # noqa: PLW2901 - what is left of it
        for word in _WORD.findall(line):
            if word.lower() in _INSTEAD:
                yield number, word, _INSTEAD[word.lower()]


def _phrases(text: str) -> Iterator[Finding]:
    for match in _PHRASE.finditer(text):
        phrase = " ".join(match[0].split())
        yield text.count("\n", 0, match.start()) + 1, phrase, PHRASES[phrase.lower()]


def _files(arguments: list[str]) -> Iterator[Path]:
    """Files that git tracks, below the arguments or everywhere; this one and stored formats are left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        path = ROOT / name
        left_out = name in ("tools/words.py", "LICENSE", "constraints.txt") or name.startswith("tests/recordings/")
        if path.suffix in SUFFIXES and not left_out and path.is_file():
            yield path


def main(arguments: list[str]) -> int:
    """Print what was found; the exit code."""
    count = 0
    for path in _files(arguments):
        for line, word, instead in findings(path):
            print(f"{path.relative_to(ROOT)}:{line}: banned word {word!r}: write {instead}")  # noqa: T201
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

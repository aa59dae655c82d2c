"""Bundled experiments by their first lines: the questions for a start, and the titles of the conformance set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# The annotation's number is its place in the list.
_QUESTION = re.compile(r"^    nodefall\.dev/question: '(\d+)\. (.+)'$", re.MULTILINE)
_TITLE = re.compile(r"^  title: '?(.+?)'?$", re.MULTILINE)


def read_summaries(paths: Iterable[Path]) -> tuple[dict[str, str], dict[str, str]]:
    """The questions of the experiments to start with, in their order, and the titles of the others, by name.

    Reads only the two lines, as loading all experiments takes seconds.
    """
    questions, titles = dict[str, tuple[int, str]](), dict[str, str]()
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        if question := _QUESTION.search(text):
            questions[path.stem] = int(question[1]), question[2]
        elif title := _TITLE.search(text):
            titles[path.stem] = title[1].replace("''", "'")
    return {name: question for name, (_, question) in sorted(questions.items(), key=lambda item: item[1])}, titles

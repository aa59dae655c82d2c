"""Write docs/time-words.md from the time words of ``nodefall explain``.

Run `python tools/time_word_page.py` after a change of them; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chaos.cli.time_words import TIME_WORDS, describe, worked_lines

PAGE = Path(__file__).parents[1] / "docs" / "time-words.md"
_HEAD = """\
<!-- Written by tools/time_word_page.py from chaos/cli/time_words.py. -->

# Time words, worked out

Every line below an example is one history of the cluster and the verdict on it; tests judge each with the judge's
code. Seconds count from `after`. `nodefall explain WORD` prints the same. The exact rules are in
[assertions.md](assertions.md#time-words).
"""


def page() -> str:
    """The text of the page."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for name, word in TIME_WORDS.items():
        worked = "\n".join(line.strip() for line in worked_lines(describe(name)["worked"]))
        yield f"## {name}\n\n{word.summary[0].upper()}{word.summary[1:]}.\n"
        yield f"```yaml\n- {word.example}\n```\n\n```\n{worked}\n```\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

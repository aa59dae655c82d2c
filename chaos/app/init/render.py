"""An inventory as YAML with a comment for each line that was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.app.discovery.entries import Entries, is_section
from chaos.app.discovery.proposal import Proposal
from chaos.core.text import printable
from chaos.documents.yaml_text import inline

_WIDTH = 140  # a longer line has its comment above


def render(proposal: Proposal, nodefall: str) -> str:
    """The text of the inventory; ``nodefall``: the version that writes it."""
    head = [
        f"Written by nodefall {nodefall} init; yours to change. Paths are relative to this file.",
        *proposal.head,
        *(f"Note: {note}." for note in proposal.notes),
    ]
    return "\n".join([*(f"# {printable(line)}" for line in head), *_lines(proposal.entries, "")]) + "\n"


def _lines(entries: Entries, indent: str) -> Iterator[str]:
    for entry in entries:
        comment = f"# {printable(entry.reason)}" if entry.reason else ""
        text = f"{indent}{inline(entry.key)}:" + ("" if is_section(entry) else f" {inline(entry.value)}")
        yield from _with_comment(text, comment, indent)
        if is_section(entry):
            yield from _lines(entry.value, f"{indent}  ")


def _with_comment(text: str, comment: str, indent: str) -> Iterable[str]:
    if not comment:
        return (text,)
    joined = f"{text}  {comment}"
    return (joined,) if len(joined) <= _WIDTH else (f"{indent}{comment}", text)

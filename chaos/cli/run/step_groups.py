"""Reports of one step on many nodes, as one line."""

from __future__ import annotations

from chaos.core.text import on_node, printable

_NAMED = 3  # nodes that a line names, if there are more


class StepGroups:
    """Reports that wait to be printed, grouped by step and kind, in the order of the first of each group."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], list[tuple[str, str]]] = {}  # node and text of each report

    def add(self, step: str, node: str, what: str) -> None:
        """Add a report: ``what`` was done, proven or undone. It differs by its node and measured values only."""
        self._groups.setdefault((step, _kind(node, what)), []).append((node, what))

    def flush(self) -> list[str]:
        """A line for each group; they are forgotten."""
        lines = [_line(step, reports) for (step, _), reports in self._groups.items()]
        self._groups.clear()
        return lines


def _kind(node: str, what: str) -> str:
    """What reports of many nodes share: the word before a colon, as ``proven``, else the text without the node."""
    word, colon, _ = what.partition(": ")
    return word if colon and word.isalpha() else what.replace(node, "\0") if node else what


def _line(step: str, reports: list[tuple[str, str]]) -> str:
    (node, what), *others = reports
    if not others:
        return printable(f"{on_node(f'step {step}', node)}: {what}")
    nodes = list(dict.fromkeys(name for name, _ in reports))
    named = ", ".join(nodes[:_NAMED]) + (f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else "")
    is_same = all(text == what for _, text in others)
    likewise = "" if is_same else f" (of {len(reports)} alike)"
    return printable(f"step {step} on {named}: {what}{likewise}")

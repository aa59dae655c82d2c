"""The help of commands: it fits the terminal, and its examples can be pasted."""

from __future__ import annotations

import re
import shutil

import click

_COMMAND = re.compile(r"\s+([A-Z_]+=\S+ )?(nodefall|kubectl) ")
_WORD = r"""(?:[^\s"']|"[^"]*"|'[^']*')+"""
_PART = re.compile(rf"(?:--?[\w-]+ (?=[^-\s|>&])|[>|] )?{_WORD}")  # an option is not parted from its value
_DEFAULT, _LEAST, _MARGIN = 80, 20, 2  # columns


class _HelpFormatter(click.HelpFormatter):
    """Breaks what is wider than the terminal, a command behind a backslash."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = min(shutil.get_terminal_size().columns, max_width or _DEFAULT)
        super().__init__(indent_increment, width or max(columns - _MARGIN, _LEAST), max_width)

    def write(self, string: str) -> None:
        """Write lines that fit."""
        super().write("".join(map(self._fitted, string.splitlines(keepends=True))))

    def _fitted(self, line: str) -> str:
        if len(line.rstrip()) <= self.width:
            return line
        indent = line[: len(line) - len(line.lstrip())]
        is_command = _COMMAND.match(line) is not None
        room, between = self.width - len(indent), f"\n{indent}"
        if is_command:
            room, between = room - 4, f" \\\n{indent}  "
        parts = [""]
        for part in _PART.findall(line):
            if parts[-1] and len(parts[-1]) + len(part) >= room:
                parts.append("")
            parts[-1] += f" {part}" if parts[-1] else part
        return f"{indent}{between.join(parts)}\n"


class HelpContext(click.Context):
    """A context whose help fits the terminal."""

    formatter_class = _HelpFormatter

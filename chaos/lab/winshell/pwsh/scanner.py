"""Position in the text of a script, with what all parsers need: blanks, comments, strings, names."""

from __future__ import annotations

import re
from collections.abc import Callable

from chaos.lab.winshell.pwsh.syntax import Expandable, Expression, SyntaxProblem

_BLANKS = re.compile(r"(?:[ \t\r]|`\r?\n|<#.*?#>|#[^\n]*)+", re.DOTALL)
_BREAKS = re.compile(r"(?:[ \t\r\n;]|`\r?\n|<#.*?#>|#[^\n]*)+", re.DOTALL)
_LINES = re.compile(r"(?:[ \t\r\n]|`\r?\n|<#.*?#>|#[^\n]*)+", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Scanner:
    """Reads ``text`` from ``position`` on.

    ``embedded`` parses the ``$`` of a string and what follows it, None for plain text.
    """

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.embedded: Callable[[], Expression | None] = lambda: None

    @property
    def is_at_end(self) -> bool:
        return self.position >= len(self.text)

    def peek(self, length: int = 1) -> str:
        """The next characters."""
        return self.text[self.position : self.position + length]

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match and consume."""
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def take(self, text: str) -> bool:
        """Consume ``text`` if it is next."""
        if self.text.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def expect(self, text: str) -> None:
        """Consume ``text``. Raises SyntaxProblem."""
        if not self.take(text):
            raise self.problem(f"Missing '{text}'")

    def problem(self, reason: str) -> SyntaxProblem:
        """An error at this position."""
        return SyntaxProblem(f"{reason} at: {self.text[self.position : self.position + 40]!r}")

    def skip_blanks(self) -> None:
        """Skip blanks and comments within a line."""
        self.match(_BLANKS)

    def skip_lines(self) -> None:
        """Skip blanks, comments and line ends."""
        self.match(_LINES)

    def skip_breaks(self) -> None:
        """Skip what separates statements."""
        self.match(_BREAKS)

    def single_quoted(self) -> str:
        """A string in single quotes. Raises SyntaxProblem."""
        self.expect("'")
        parts = []
        while not self.is_at_end:
            character = self._next()
            if character != "'":
                parts.append(character)
            elif self.take("'"):
                parts.append("'")
            else:
                return "".join(parts)
        raise self.problem("The string is missing the terminator: '")

    def double_quoted(self) -> Expandable:
        """A string in double quotes. Raises SyntaxProblem."""
        self.expect('"')
        parts: list[str | Expression] = []
        while not self.is_at_end:
            if self.peek() == "$" and (value := self.embedded()) is not None:
                parts.append(value)
                continue
            character = self._next()
            if character == "`":
                parts.append(self.escaped())
            elif character != '"' or self.take('"'):
                parts.append(character)
            else:
                return Expandable(tuple(parts))
        raise self.problem('The string is missing the terminator: "')

    def escaped(self) -> str:
        """The character after a backtick."""
        character = self._next()
        return _ESCAPES.get(character, character)

    def _next(self) -> str:
        character = self.peek()
        self.position += 1
        return character

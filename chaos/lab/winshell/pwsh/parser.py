"""Parser of scripts: statements, pipelines, commands."""

from __future__ import annotations

import re

from chaos.lab.winshell.pwsh.expressions import ExpressionParser
from chaos.lab.winshell.pwsh.scanner import Scanner
from chaos.lab.winshell.pwsh.syntax import (
    Assignment,
    Command,
    Expandable,
    Expression,
    Flow,
    ForEach,
    If,
    Index,
    Items,
    Literal,
    Member,
    Parameter,
    Pipeline,
    Script,
    Statement,
    Try,
    Variable,
    While,
)

_WORD = re.compile(r"[^\s;|&(){}\"'`$,<>]+")
_KEYWORD = re.compile(
    r"(if|foreach|while|try|exit|throw|return|break|continue|function|switch|for|do)\b(?![-.\\])", re.IGNORECASE
)
_PARAMETER = re.compile(r"-([A-Za-z]\w*)(:)?(?=$|[\s;|)}:'\"$(@])")
_NAME = re.compile(r"\$(?:\w+:)?(\w+)")
_ASSIGN = re.compile(r"\s*([+*/-]?=)(?!=)")
_REDIRECT = re.compile(r"([12*]?)>>?\s*(\$null|&[12])", re.IGNORECASE)
_EXPRESSION_START = frozenset("$'\"(@[{!+-0123456789,")
_END = frozenset(";|)}\n&<>")


def parse(text: str) -> Script:
    """Parse a script. Raises SyntaxProblem."""
    return _Parser(text).script("")


class _Parser:
    def __init__(self, text: str) -> None:
        self._scanner = Scanner(text)
        self._expressions = ExpressionParser(self._scanner, self.script, self._statement)

    def script(self, end: str) -> Script:
        """Statements up to ``end``, which is consumed; empty for the end of the text. Raises SyntaxProblem."""
        scanner = self._scanner
        statements: list[Statement] = []
        while True:
            scanner.skip_breaks()
            if scanner.is_at_end or (end and scanner.peek() == end):
                if end:
                    scanner.expect(end)
                return Script(tuple(statements))
            statements.append(self._statement())
            scanner.skip_blanks()
            if not scanner.is_at_end and scanner.peek() not in (";", "\n", end) and not self._ended_by_brace():
                raise scanner.problem("Unexpected token")

    def _ended_by_brace(self) -> bool:
        return self._scanner.text[: self._scanner.position].rstrip().endswith("}")

    def _statement(self) -> Statement:
        start = self._scanner.position
        if word := self._scanner.match(_KEYWORD):
            return self._keyword(word[1].lower())
        if self._scanner.peek() in _EXPRESSION_START:
            target = self._expressions.parse()
            if operator := self._scanner.match(_ASSIGN):
                if not isinstance(target, Variable | Member | Index):
                    raise self._scanner.problem("The assignment expression is not valid")
                self._scanner.skip_lines()
                value = self._statement()
                return Assignment(target, operator[1], value, self._since(start))
            return self._pipeline(target, start)
        return self._pipeline(None, start)

    def _keyword(self, word: str) -> Statement:
        self._scanner.skip_lines() if word in ("if", "foreach", "while", "try") else self._scanner.skip_blanks()
        if word == "if":
            return self._if()
        if word == "foreach":
            return self._foreach()
        if word == "while":
            return While(self._condition(), self._block())
        if word == "try":
            return self._try()
        if word not in ("exit", "throw", "return", "break", "continue"):
            raise self._scanner.problem(f"'{word}' is not simulated")
        is_bare = self._scanner.is_at_end or self._scanner.peek() in _END
        return Flow(word, None if is_bare else self._pipeline(None, self._scanner.position))

    def _if(self) -> If:
        branches = [(self._condition(), self._block())]
        while self._follows("elseif"):
            branches.append((self._condition(), self._block()))
        return If(tuple(branches), self._block() if self._follows("else") else None)

    def _foreach(self) -> ForEach:
        self._scanner.expect("(")
        self._scanner.skip_blanks()
        name = self._scanner.match(_NAME)
        self._scanner.skip_blanks()
        if not name or self._scanner.peek(3).lower() != "in ":
            raise self._scanner.problem("Missing variable name after foreach")
        self._scanner.position += 3
        items = self._pipeline(None, self._scanner.position)
        self._scanner.skip_blanks()
        self._scanner.expect(")")
        return ForEach(name[1], items, self._block())

    def _try(self) -> Try:
        body = self._block()
        handler = self._block() if self._follows("catch") else None
        return Try(body, handler, self._block() if self._follows("finally") else None)

    def _condition(self) -> Pipeline:
        self._scanner.skip_lines()
        self._scanner.expect("(")
        pipeline = self._pipeline(None, self._scanner.position)
        self._scanner.skip_lines()
        self._scanner.expect(")")
        return pipeline

    def _block(self) -> Script:
        self._scanner.skip_lines()
        self._scanner.expect("{")
        return self.script("}")

    def _follows(self, word: str) -> bool:
        """Whether ``word`` is next, after blanks and line ends; it is consumed."""
        start = self._scanner.position
        self._scanner.skip_lines()
        if self._scanner.peek(len(word)).lower() == word and not self._scanner.peek(len(word) + 1)[-1:].isalnum():
            self._scanner.position += len(word)
            return True
        self._scanner.position = start
        return False

    def _pipeline(self, first: Expression | None, start: int) -> Pipeline:
        self._scanner.skip_blanks()
        stages: list[Command | Expression] = [first if first is not None else self._stage()]
        while True:
            self._scanner.skip_blanks()
            if not self._scanner.take("|"):
                return Pipeline(tuple(stages), self._since(start))
            self._scanner.skip_lines()
            stages.append(self._command())

    def _stage(self) -> Command | Expression:
        if self._scanner.peek() in _EXPRESSION_START:
            return self._expressions.parse()
        return self._command()

    def _command(self) -> Command:
        scanner = self._scanner
        is_called = scanner.take("&")
        scanner.skip_blanks()
        name = self._argument(is_name=not is_called)
        words: list[Expression | Parameter] = []
        redirects = []
        while True:
            scanner.skip_blanks()
            if found := scanner.match(_REDIRECT):
                redirects.append((found[1] or "1", found[2].lower() if found[2][0] == "&" else ""))
            elif scanner.is_at_end or scanner.peek() in _END:
                return Command(name, tuple(words), tuple(redirects), is_called)
            elif found := scanner.match(_PARAMETER):
                words.append(Parameter(found[1], self._argument() if found[2] else None))
            else:
                words.append(self._argument())

    def _argument(self, *, is_name: bool = False) -> Expression:
        """An argument of a command; commas make an array."""
        self._scanner.skip_blanks()
        items = [self._word()]
        while not is_name and self._scanner.take(","):
            self._scanner.skip_lines()
            items.append(self._word())
        return items[0] if len(items) == 1 else Items(tuple(items))

    def _word(self) -> Expression:
        """A string, a value with its members, or a bare word, which may contain quoted parts and variables."""
        scanner = self._scanner
        if scanner.peek() in ("(", "{", "@") or scanner.peek(2) == "$(":
            return self._expressions.postfix(self._expressions.primary())
        parts: list[str | Expression] = []
        while (part := self._part(is_first=not parts)) is not None:
            parts.append(part)
        if not parts:
            raise scanner.problem("Missing an argument")
        return _bare(parts[0]) if len(parts) == 1 else Expandable(tuple(parts))

    def _part(self, *, is_first: bool) -> str | Expression | None:
        """A part of a bare word, None at its end."""
        scanner = self._scanner
        if scanner.peek() == "'":
            return Literal(scanner.single_quoted())
        if scanner.peek() == '"':
            return scanner.double_quoted()
        if scanner.take("`"):
            return scanner.escaped()
        if scanner.peek() == "$":
            value = scanner.embedded()
            if value is None:
                scanner.expect("$")
                return "$"
            return self._expressions.postfix(value) if is_first else value
        found = scanner.match(_WORD)
        return found[0] if found else None

    def _since(self, start: int) -> str:
        return self._scanner.text[start : self._scanner.position].strip()


def _bare(part: str | Expression) -> Expression:
    """A bare word that looks like a number is one."""
    if not isinstance(part, str):
        return part
    if re.fullmatch(r"-?(?:0|[1-9]\d*)", part):
        return Literal(int(part))
    return Literal(float(part)) if re.fullmatch(r"-?\d+\.\d+", part) else Literal(part)

"""Parser of expressions, by precedence."""

from __future__ import annotations

import re
from collections.abc import Callable

from chaos.lab.winshell.pwsh.scanner import Scanner
from chaos.lab.winshell.pwsh.syntax import (
    Binary,
    Block,
    Call,
    Cast,
    Expression,
    Group,
    Index,
    Items,
    Literal,
    Member,
    Script,
    Statement,
    Table,
    TypeName,
    Unary,
    Variable,
)

_LOGICAL = re.compile(r"-(and|or|xor)\b", re.IGNORECASE)
_COMPARISON = re.compile(
    r"-([ci]?(?:eq|ne|gt|ge|lt|le|like|notlike|match|notmatch|contains|notcontains|in|notin|replace|split)|join|is|as)\b",
    re.IGNORECASE,
)
_SUM, _PRODUCT = re.compile(r"[+-](?![=+\-A-Za-z])"), re.compile(r"[*/%](?!=)")
_FORMAT, _RANGE = re.compile(r"-f\b", re.IGNORECASE), re.compile(r"\.\.")
_NOT = re.compile(r"!|-not\b", re.IGNORECASE)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"(kb|mb|gb|tb)\b", re.IGNORECASE)
_UNITS = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_TYPE = re.compile(r"\[([A-Za-z_][\w.+]*(?:\[\])?)\]")
_VARIABLE = re.compile(r"\$(?:(?:(env|global|script|local):)?(\w+)|\{([^}]+)\}|([?_$^]))", re.IGNORECASE)
_NAME = re.compile(r"\w+")
_CONSTANTS = {"true": True, "false": False, "null": None}


class ExpressionParser:
    """Parses expressions of ``scanner``; ``script`` parses statements up to a closing character."""

    def __init__(self, scanner: Scanner, script: Callable[[str], Script], statement: Callable[[], Statement]) -> None:
        self._scanner, self._script, self._statement = scanner, script, statement
        scanner.embedded = self._embedded

    def parse(self) -> Expression:
        """Parse one expression. Raises SyntaxProblem."""
        return self._binary(_LOGICAL, self._comparison)

    def _comparison(self) -> Expression:
        return self._binary(_COMPARISON, self._sum)

    def _sum(self) -> Expression:
        return self._binary(_SUM, self._product)

    def _product(self) -> Expression:
        return self._binary(_PRODUCT, self._format)

    def _format(self) -> Expression:
        return self._binary(_FORMAT, self._range)

    def _range(self) -> Expression:
        return self._binary(_RANGE, self._items)

    def _binary(self, operator: re.Pattern[str], operand: Callable[[], Expression]) -> Expression:
        left = operand()
        while True:
            start = self._scanner.position
            self._scanner.skip_blanks()
            found = self._scanner.match(operator)
            if not found:
                self._scanner.position = start
                return left
            self._scanner.skip_lines()
            left = Binary(found[0].lstrip("-").lower() or "-", left, operand())

    def _items(self) -> Expression:
        first = self._unary()
        items = [first]
        while True:
            start = self._scanner.position
            self._scanner.skip_blanks()
            if not self._scanner.take(","):
                self._scanner.position = start
                return first if len(items) == 1 else Items(tuple(items))
            self._scanner.skip_lines()
            items.append(self._unary())

    def _unary(self) -> Expression:
        scanner = self._scanner
        scanner.skip_blanks()
        if scanner.match(_NOT):
            return Unary("not", self._unary())
        if scanner.take("-"):
            return Unary("-", self._unary())
        if scanner.take(","):
            return Items((self._unary(),))
        if found := scanner.match(_TYPE):
            following = scanner.peek()
            if following in ("'", '"', "$", "(", "[", "@") or following.isdigit():
                return Cast(found[1], self._unary())
            return self.postfix(TypeName(found[1]))
        return self.postfix(self.primary())

    def postfix(self, owner: Expression) -> Expression:
        """Members, calls and indexes after ``owner``, without blanks between. Raises SyntaxProblem."""
        scanner = self._scanner
        while True:
            if scanner.take("::") or (scanner.peek() == "." and scanner.peek(2)[1:].isalpha() and scanner.take(".")):
                name = scanner.match(_NAME)
                if not name:
                    raise scanner.problem("Missing property name after reference operator")
                owner = Call(owner, name[0], self._arguments()) if scanner.take("(") else Member(owner, name[0])
            elif scanner.peek() == "[" and not isinstance(owner, Literal):
                scanner.expect("[")
                owner = Index(owner, self.parse())
                scanner.skip_blanks()
                scanner.expect("]")
            else:
                return owner

    def _arguments(self) -> tuple[Expression, ...]:
        """Arguments up to the closing parenthesis. A comma separates them and makes no array."""
        scanner = self._scanner
        found: list[Expression] = []
        scanner.skip_lines()
        while not scanner.take(")"):
            value = self.parse()
            found += value.items if isinstance(value, Items) else [value]
            scanner.skip_lines()
            if scanner.peek() != ")":
                raise scanner.problem("Missing ')' in method call")
        return tuple(found)

    def primary(self) -> Expression:
        """A value without what follows it. Raises SyntaxProblem."""
        scanner = self._scanner
        if scanner.peek() == '"':
            return scanner.double_quoted()
        if scanner.peek() == "'":
            return Literal(scanner.single_quoted())
        if found := scanner.match(_NUMBER):
            return Literal(self._number(found[0]))
        if (group := self._group()) is not None:
            return group
        if found := scanner.match(_VARIABLE):
            return _variable(found)
        raise scanner.problem("Unexpected token")

    def _group(self) -> Expression | None:
        """What is in parentheses or braces, None if there is no such thing here."""
        scanner = self._scanner
        if scanner.take("@{"):
            return self._table()
        if scanner.take("{"):
            return Block(self._script("}"))
        if scanner.take("@("):
            return Group(self._script(")"), is_array=True)
        return Group(self._script(")")) if scanner.take("$(") or scanner.take("(") else None

    def _number(self, text: str) -> int | float:
        value = int(text, 16) if text[:2].lower() == "0x" else float(text) if not text.isdecimal() else int(text)
        unit = self._scanner.match(_UNIT)
        return value * _UNITS[unit[1].lower()] if unit else value

    def _table(self) -> Table:
        scanner, entries = self._scanner, []
        scanner.skip_breaks()
        while not scanner.take("}"):
            name = scanner.match(_NAME)
            key: Expression = Literal(name[0]) if name else self.primary()
            scanner.skip_blanks()
            scanner.expect("=")
            scanner.skip_lines()
            entries.append((key, self._statement()))
            scanner.skip_breaks()
        return Table(tuple(entries))

    def _embedded(self) -> Expression | None:
        """A variable or ``$(...)`` in a string; in it a dot or a bracket is text."""
        if self._scanner.take("$("):
            return Group(self._script(")"))
        found = self._scanner.match(_VARIABLE)
        return _variable(found) if found else None


def _variable(found: re.Match[str]) -> Expression:
    name = found[2] or found[3] or found[4]
    if found[3] and found[3].lower().startswith("env:"):
        return Variable(found[3][4:], "env")
    if not found[1] and name.lower() in _CONSTANTS:
        return Literal(_CONSTANTS[name.lower()])
    return Variable(name, "env" if (found[1] or "").lower() == "env" else "")

"""Syntax tree of a script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


class SyntaxProblem(ValueError):
    """The script is invalid, or needs syntax that is not simulated."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Expandable:
    """A string in double quotes: texts and expressions."""

    parts: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """``scope``: env, or empty."""

    name: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class TypeName:
    name: str


@dataclass(frozen=True, slots=True)
class Member:
    owner: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    owner: Expression
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Index:
    owner: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    type: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Items:
    """``a, b``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``(...)`` with one statement, ``$(...)``, or ``@(...)``, which is always an array."""

    body: Script
    is_array: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """``@{key = value}``."""

    entries: tuple[tuple[Expression, Statement], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """``{...}``."""

    body: Script


Expression: TypeAlias = (
    Literal | Expandable | Variable | TypeName | Member | Call | Index | Cast | Unary | Binary | Items | Group | Table
    | Block
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """``-Name``, or ``-Name:value``."""

    name: str
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """``is_called``: with the operator ``&``. ``redirects``: (stream, target), an empty target for $null."""

    name: Expression
    words: tuple[Expression | Parameter, ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()
    is_called: bool = False


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The first stage may be an expression."""

    stages: tuple[Command | Expression, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    target: Expression
    operator: str
    value: Statement
    text: str = ""


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple[Pipeline, Script], ...]
    otherwise: Script | None


@dataclass(frozen=True, slots=True)
class ForEach:
    variable: str
    items: Pipeline
    body: Script


@dataclass(frozen=True, slots=True)
class While:
    condition: Pipeline
    body: Script


@dataclass(frozen=True, slots=True)
class Try:
    body: Script
    handler: Script | None
    final: Script | None


@dataclass(frozen=True, slots=True)
class Flow:
    """``exit``, ``throw``, ``return``, ``break`` or ``continue``."""

    word: str
    value: Pipeline | None = None


Statement: TypeAlias = Pipeline | Assignment | If | ForEach | While | Try | Flow


@dataclass(frozen=True, slots=True)
class Script:
    statements: tuple[Statement, ...] = field(default=())
